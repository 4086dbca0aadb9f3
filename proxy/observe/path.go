package observe

import (
	"bytes"
	"net/url"
	"strings"

	"github.com/graphiti-proxy/graphiti-proxy/proxy/wire"
)

// hidden replaces a possible key.
const hidden = "***"

// keyPrefixes are the prefixes of keys that may be too short for random.
var keyPrefixes = []string{"sk-", "sk_", "pk-", "pk_", "rk_", "AIza", "ya29.", "ghp_", "gho_", "ghs_", "ghu_", "ghr_", "github_pat_", "glpat-", "xoxb-", "xoxp-", "AKIA", "ASIA", "hf_", "gsk_", "eyJ", "r8_", "Bearer"}

// loggedPath returns a request's path for the log, without its query and possible keys.
func loggedPath(target []byte) string {
	path, _, _ := bytes.Cut(wire.OriginForm(target), []byte{'?'})
	path, _, _ = bytes.Cut(path, []byte{'#'})
	segments := strings.Split(string(path), "/")
	for i, s := range segments {
		if plain, err := url.PathUnescape(s); err == nil {
			s = plain
		}
		if likeKey(s) {
			segments[i] = hidden
		}
	}
	return strings.Join(segments, "/")
}

// likeKey reports whether a text may be or contain a key: it has a key's prefix, has a
// long run of letters and digits, or changes between lower case, upper case and digits
// more often than names do. It is also true for ids of answers and files, which have the
// same form.
func likeKey(s string) bool {
	if _, rest, ok := strings.Cut(s, ":"); ok && strings.Contains(rest, "@") { // user:password@
		return true
	}
	for part := range strings.FieldsFuncSeq(s, func(r rune) bool { return strings.ContainsRune("=&;,: /", r) }) {
		for _, p := range keyPrefixes {
			if strings.HasPrefix(part, p) && len(part) >= len(p)+6 {
				return true
			}
		}
		if random(part) {
			return true
		}
	}
	return false
}

// longRun is a number of letters and digits in a row that no word has.
const longRun = 32

// random reports whether a text seems to be generated at random.
func random(s string) bool {
	const longText = 20
	run, changes, last := 0, 0, byte(0)
	for i := range len(s) {
		class := classOf(s[i])
		if class == 0 {
			run, last = 0, 0
			continue
		}
		if run++; run >= longRun {
			return true
		}
		if last != 0 && class != last {
			changes++
		}
		last = class
	}
	return len(s) >= longText && 4*changes >= len(s)
}

func classOf(c byte) byte {
	switch {
	case 'a' <= c && c <= 'z':
		return 'a'
	case 'A' <= c && c <= 'Z':
		return 'A'
	case '0' <= c && c <= '9':
		return '0'
	}
	return 0
}
