package graphiti

import "unicode/utf8"

// Truncate shortens s to n bytes at most, between two characters.
func Truncate(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
