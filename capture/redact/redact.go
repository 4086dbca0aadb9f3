// Package redact removes credentials from the texts of people and models. It owns the rules
// that find them: any name, a sign and a random value; a name for a secret and a value; a
// short prefix, a sign and random characters. own.txt has the other forms.
package redact

import (
	"iter"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// maxText bounds the searched text, in bytes; the rest is cut off. It is the length of
// the longest message that may be stored.
const maxText = 4 << 20

// cutOff ends a text that was cut at maxText.
const cutOff = "…[truncated]"

// Redact replaces every secret with [redacted:<kind>], and returns their number.
func Redact(text string) (string, int) {
	text, n, _ := RedactBy(text, time.Time{})
	return text, n
}

// RedactBy is Redact with a deadline. ok is false if the deadline passed: then the text
// is empty.
func RedactBy(text string, by time.Time) (_ string, n int, ok bool) {
	if len(text) > maxText {
		end := maxText
		for !utf8.RuneStart(text[end]) {
			end--
		}
		text = text[:end] + cutOff
	}
	if len(text) < 8 {
		return text, 0, true
	}
	s := newScan(text)
	late := func() bool { return !by.IsZero() && time.Now().After(by) }
	var list []found // of two secrets at one place, the first counts
	for _, rule := range own {
		if rule.has(s.lower) {
			if late() {
				return "", 0, false
			}
			list = s.byRule(list, rule)
		}
	}
	list = s.named(list)
	if late() {
		return "", 0, false
	}
	text, n = s.without(s.random(list))
	return text, n, true
}

// scan is the search for secrets in one text.
type scan struct {
	text  string
	lower string // text with its ASCII letters in lower case: offsets stay the same
}

// found is the place and the kind of a secret in a text.
type found struct {
	start, end int
	id         string
}

func newScan(text string) *scan {
	lower := []byte(text)
	for i, c := range lower {
		if isUpper(c) {
			lower[i] = c | 0x20
		}
	}
	return &scan{text, string(lower)}
}

// places yields the offsets of a lower-case word in the text.
func (s *scan) places(word string) iter.Seq[int] {
	return func(yield func(int) bool) {
		for at := 0; ; at++ {
			i := strings.Index(s.lower[at:], word)
			if i < 0 || !yield(at+i) {
				return
			}
			at += i
		}
	}
}

// without returns the text without some secrets, and their number. Two secrets that overlap
// count as one, of the kind of the first. A secret that contains an earlier redaction
// stays.
func (s *scan) without(list []found) (string, int) {
	slices.SortStableFunc(list, func(a, b found) int { return a.start - b.start })
	var b strings.Builder
	at, n := 0, 0
	for _, f := range list {
		switch {
		case strings.Contains(s.text[f.start:f.end], "[redacted:"):
		case f.start < at:
			at = max(at, f.end) // the rest of a secret that overlaps
		default:
			b.WriteString(s.text[at:f.start] + "[redacted:" + f.id + "]")
			at = f.end
			n++
		}
	}
	b.WriteString(s.text[at:])
	return b.String(), n
}
