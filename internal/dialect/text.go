package dialect

import (
	"bytes"
	"unicode/utf16"
	"unicode/utf8"
)

// WithoutMark returns a body without the byte order mark at its beginning.
func WithoutMark(body []byte) []byte { return bytes.TrimPrefix(body, []byte("\uFEFF")) }

// appendText appends the text of a JSON string's inside.
func appendText(dst, raw []byte) []byte {
	for len(raw) > 0 {
		if raw[0] != '\\' {
			i := indexEscape(raw)
			dst, raw = append(dst, raw[:i]...), raw[i:]
			continue
		}
		r, n := decodeEscape(raw)
		dst, raw = utf8.AppendRune(dst, r), raw[n:]
	}
	return dst
}

// indexEscape returns the offset of the first escape, or the end.
func indexEscape(b []byte) int {
	if i := bytes.IndexByte(b, '\\'); i >= 0 {
		return i
	}
	return len(b)
}

// decodeEscape decodes the escape at the start of b, which the scanner has
// accepted. A surrogate without its other half becomes U+FFFD.
func decodeEscape(b []byte) (rune, int) {
	switch b[1] {
	case 'b':
		return '\b', 2
	case 'f':
		return '\f', 2
	case 'n':
		return '\n', 2
	case 'r':
		return '\r', 2
	case 't':
		return '\t', 2
	case 'u':
		r := hex4(b[2:])
		if !utf16.IsSurrogate(r) {
			return r, 6
		}
		if len(b) >= 12 && b[6] == '\\' && b[7] == 'u' {
			if p := utf16.DecodeRune(r, hex4(b[8:])); p != utf8.RuneError {
				return p, 12
			}
		}
		return utf8.RuneError, 6
	}
	return rune(b[1]), 2
}

func hex4(b []byte) rune {
	return hexValue(b[0])<<12 | hexValue(b[1])<<8 | hexValue(b[2])<<4 | hexValue(b[3])
}

// appendJSON appends text as the inside of a JSON string. It escapes only the characters
// that JSON does not allow.
func appendJSON(dst []byte, text string) []byte {
	const hex = "0123456789abcdef"
	for i := 0; i < len(text); {
		c := text[i]
		switch {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c == '\n':
			dst = append(dst, '\\', 'n')
		case c < 0x20:
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		case c < utf8.RuneSelf:
			dst = append(dst, c)
		default:
			r, n := utf8.DecodeRuneInString(text[i:])
			dst = utf8.AppendRune(dst, r)
			i += n
			continue
		}
		i++
	}
	return dst
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

// trim cuts white space off both ends.
func trim(b []byte) []byte {
	for len(b) > 0 && isSpace(b[0]) {
		b = b[1:]
	}
	for len(b) > 0 && isSpace(b[len(b)-1]) {
		b = b[:len(b)-1]
	}
	return b
}

// trimRaw cuts white space, also escaped, off both ends of a JSON string's
// inside.
func trimRaw(b []byte) []byte { return trimRawEnd(trimRawStart(b)) }

func trimRawStart(b []byte) []byte {
	for len(b) > 0 {
		switch {
		case isSpace(b[0]):
			b = b[1:]
		case b[0] == '\\' && (b[1] == 'n' || b[1] == 't' || b[1] == 'r'):
			b = b[2:]
		default:
			return b
		}
	}
	return b
}

func trimRawEnd(b []byte) []byte {
	for len(b) > 0 {
		c := b[len(b)-1]
		switch {
		case isSpace(c):
			b = b[:len(b)-1]
		case (c == 'n' || c == 't' || c == 'r') && backslashes(b[:len(b)-1])%2 == 1:
			b = b[:len(b)-2]
		default:
			return b
		}
	}
	return b
}

// backslashes counts those at the end of b.
func backslashes(b []byte) int {
	n := 0
	for n < len(b) && b[len(b)-1-n] == '\\' {
		n++
	}
	return n
}
