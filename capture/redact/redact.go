// Package redact takes credentials out of what people and models say. It owns
// the rules by which they are known: those of gitleaks, kept in rules.json as
// update.py makes it, and our own, in own.txt. Code reads what a rule cannot say:
// settings, addresses and headers.
//
// It must not know of turns or memories, and imports none of our packages.
package redact

import (
	"iter"
	"math/bits"
	"slices"
	"sort"
	"strings"
	"time"
	"unicode/utf8"
)

// maxText bounds the text that is looked at, in bytes; what is behind it is cut
// off. It is as long as the longest message that may be kept.
const maxText = 4 << 20

// cutOff ends a text that was longer.
const cutOff = "…[truncated]"

// Redactor replaces secrets in texts. It is safe for concurrent use.
type Redactor struct {
	own   []*rule
	rules []*rule     // of gitleaks
	allow []allowlist // of gitleaks, for all its rules
}

// New reads the rules.
func New() (*Redactor, error) {
	own, err := ownRules()
	if err != nil {
		return nil, err
	}
	rules, allow, err := readRules()
	if err != nil {
		return nil, err
	}
	return &Redactor{own, rules, allow}, nil
}

// Redact replaces every secret with [redacted:<kind>], and returns how many there were.
func (r *Redactor) Redact(text string) (string, int) {
	text, n, _ := r.RedactBy(text, time.Time{})
	return text, n
}

// RedactBy is Redact with a deadline. ok is false when the time did not suffice: then there
// is no text.
func (r *Redactor) RedactBy(text string, by time.Time) (_ string, n int, ok bool) {
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
	own, ok := s.byRules(r.own, nil, late)
	if !ok {
		return "", 0, false
	}
	// Of two secrets at one place the kind counts that stands first in this list.
	list := s.urls(nil)
	list = s.privateKeys(list)
	list = append(list, own...)
	list = s.dotted(list)
	list = s.headers(list)
	list = s.settings(list)
	s.known = s.sorted(list)
	more, ok := s.byRules(r.rules, r.allow, late)
	if !ok {
		return "", 0, false
	}
	text, n = s.without(s.sorted(append(s.known, more...)))
	return text, n, true
}

// scan is the search for secrets in one text.
type scan struct {
	text  string
	lower string // text with ASCII letters in lower case, so that offsets stay the same
	seen  trigrams
	known []found // what is found before the rules of gitleaks are tried, sorted
}

// found is a secret's place in a text.
type found struct {
	start, end int
	id         string
}

func newScan(text string) *scan {
	lower := lowered(text)
	return &scan{text: text, lower: lower, seen: trigramsOf(lower)}
}

func lowered(text string) string {
	var b strings.Builder
	b.Grow(len(text))
	var part [256]byte // which is written at once
	for len(text) > 0 {
		n := copy(part[:], text)
		for i, c := range part[:n] {
			if isUpper(c) {
				part[i] = c | 0x20
			}
		}
		b.Write(part[:n])
		text = text[n:]
	}
	return b.String()
}

// places yields the offsets of a word in the text; the word is in lower case.
func (s *scan) places(word string) iter.Seq[int] {
	return func(yield func(int) bool) {
		if !s.seen.mayHold(word) {
			return
		}
		for at := 0; ; at++ {
			i := strings.Index(s.lower[at:], word)
			if i < 0 || !yield(at+i) {
				return
			}
			at += i
		}
	}
}

// sorted returns secrets by their places, but for those that were redacted before. Of
// those at one place the order stays.
func (s *scan) sorted(list []found) []found {
	list = slices.DeleteFunc(list, func(f found) bool { return strings.Contains(s.text[f.start:f.end], "[redacted:") })
	slices.SortStableFunc(list, func(a, b found) int { return a.start - b.start })
	return list
}

// isKnown reports whether a place lies in a secret that is known.
func (s *scan) isKnown(at int) bool {
	i := sort.Search(len(s.known), func(i int) bool { return s.known[i].start > at })
	return i > 0 && at < s.known[i-1].end
}

// without returns the text without the secrets, which are sorted, and how many there
// were. Of two that overlap the first stands for both.
func (s *scan) without(list []found) (string, int) {
	if len(list) == 0 {
		return s.text, 0
	}
	var b strings.Builder
	at, n := 0, 0
	for _, f := range list {
		if f.start < at {
			at = max(at, f.end) // the rest of one that overlaps
			continue
		}
		b.WriteString(s.text[at:f.start])
		b.WriteString("[redacted:" + f.id + "]")
		at = f.end
		n++
	}
	b.WriteString(s.text[at:])
	return b.String(), n
}

// trigrams is a filter of the sequences of three bytes that a text may hold: with it most
// of the some 300 keywords need not be searched. Its length is a power of two.
type trigrams []uint64

// mostTrigrams is the length of the filter of a long text, in words. Shorter texts, which
// most are, need less: half a word for each byte.
const mostTrigrams = 1 << 10

func trigram(s string) uint32 {
	h := uint32(s[0])<<16 | uint32(s[1])<<8 | uint32(s[2])
	return h * 2654435761 >> 16 // Knuth's multiplicative hash
}

func trigramsOf(s string) trigrams {
	t := make(trigrams, min(mostTrigrams, 1<<bits.Len(uint(len(s)/2))))
	for i := 0; i+3 <= len(s); i++ {
		word, bit := t.at(s[i:])
		t[word] |= bit
	}
	return t
}

func (t trigrams) at(s string) (word uint32, bit uint64) {
	h := trigram(s)
	return h >> 6 & uint32(len(t)-1), 1 << (h & 63) //nolint:gosec // mostTrigrams bounds it
}

func (t trigrams) mayHold(s string) bool {
	for i := 0; i+3 <= len(s); i++ {
		if word, bit := t.at(s[i:]); t[word]&bit == 0 {
			return false
		}
	}
	return true
}
