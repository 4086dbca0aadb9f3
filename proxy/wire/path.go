package wire

import (
	"bytes"
	"encoding/hex"
	"path"
	"strings"
)

// PlainPath returns the canonical form of a target's path, to recognize requests by:
// decoded, with single slashes, without "." and "..", without a query. Servers and
// proxies disagree on which spellings are the same path; PlainPath treats them as equal.
// The target itself is forwarded unchanged.
//
// The result points into target if target is canonical already, the usual case.
func PlainPath(target []byte) []byte {
	raw, _, _ := bytes.Cut(OriginForm(target), []byte{'?'})
	raw, _, _ = bytes.Cut(raw, []byte{'#'})
	if isPlain(raw) {
		return raw
	}
	return withoutDots(unescape(raw))
}

func isPlain(path []byte) bool {
	if len(path) == 0 || path[0] != '/' {
		return false
	}
	for i, c := range path {
		switch {
		case c == '%', c == '\\':
			return false
		case i > 0 && path[i-1] == '/' && (c == '/' || c == '.'): // also of names such as .well-known
			return false
		}
	}
	return true
}

// unescape decodes a path repeatedly until no escape is left: %2575 becomes u.
func unescape(path []byte) []byte {
	plain, c := make([]byte, 0, len(path)), make([]byte, 1)
	for i := range path {
		plain = append(plain, path[i])
		for n := len(plain) - 3; n >= 0 && plain[n] == '%'; n = len(plain) - 3 {
			if _, err := hex.Decode(c, plain[n+1:]); err != nil {
				break
			}
			plain = append(plain[:n], c...)
		}
	}
	return plain
}

// withoutDots joins the segments of a path with single slashes and resolves "." and "..".
func withoutDots(decoded []byte) []byte {
	slashed := "/" + strings.ReplaceAll(string(decoded), `\`, "/")
	plain := path.Clean(slashed)
	if _, last := path.Split(slashed); plain != "/" && (last == "" || last == "." || last == "..") {
		plain += "/"
	}
	return []byte(plain)
}
