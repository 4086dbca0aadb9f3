package observe

import (
	"bytes"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/graphiti-proxy/graphiti-proxy/proxy/wire"
)

// hidden replaces a possible key.
const hidden = "***"

// prefixed matches keys with a prefix, which may be too short for random.
var prefixed = regexp.MustCompile(`^(?:[sp]k[-_]|rk_|AIza|ya29\.|gh[posur]_|github_pat_|glpat-|xox[bp]-|AKIA|ASIA|hf_|gsk_|eyJ|r8_|Bearer).{6}`)

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
		if prefixed.MatchString(part) || random(part) {
			return true
		}
	}
	return false
}

// Parts of a text: letters and digits in a row, and those of one class in a row.
var (
	rows      = regexp.MustCompile(`[a-zA-Z0-9]+`)
	classRows = regexp.MustCompile(`[a-z]+|[A-Z]+|[0-9]+`)
)

// random reports whether a text seems to be generated at random.
func random(s string) bool {
	const longText, longRow = 20, 32 // no word has so long a row
	if len(s) < longText {
		return false
	}
	all := rows.FindAllString(s, -1)
	changes := len(classRows.FindAllString(s, -1)) - len(all)
	return 4*changes >= len(s) || slices.ContainsFunc(all, func(row string) bool { return len(row) >= longRow })
}
