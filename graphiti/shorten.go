package graphiti

import (
	"strings"
	"unicode/utf8"
)

const gap = "…" // replaces omitted words

// Truncate truncates s to at most n bytes, between two characters.
func Truncate[T string | []byte](s T, n int) T {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// OneLine returns the start of a text as one line of at most n characters.
func OneLine(s string, n int) string {
	return Shorten(strings.Join(strings.Fields(strings.ToValidUTF8(s[:min(len(s), 8*n)], "")), " "), gap, n)
}

// LinesOmitted replaces lines of a stored text that resemble the lines before them.
const LinesOmitted = gap + "\n"

// Shorten truncates s to at most n characters, including the mark at its end.
func Shorten(s, mark string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	keep := n - utf8.RuneCountInString(mark)
	for i := range s {
		if keep == 0 {
			return s[:i] + mark
		}
		keep--
	}
	return s
}

// ShortenMiddle truncates s to at most n characters, including the mark in its middle. It
// retains both ends, because people write before and after pasted text.
func ShortenMiddle(s, mark string, n int) string {
	count := utf8.RuneCountInString(s)
	if count <= n {
		return s
	}
	keep := n - utf8.RuneCountInString(mark)
	head, tail := keep-keep/2, count-keep/2
	from, at := 0, 0
	for i := range s {
		if at == head {
			from = i
		}
		if at == tail {
			return s[:from] + mark + s[i:]
		}
		at++
	}
	return s[:from] + mark
}
