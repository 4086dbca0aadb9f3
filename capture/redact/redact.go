// Package redact takes credentials out of what people and models say. It owns
// the rules by which they are known: those of gitleaks, kept in rules.json as
// update.py makes it, and our own, in own.txt. Code reads what a rule cannot say:
// settings, addresses and headers.
//
// It must not know of turns or memories, and imports none of our packages.
package redact

import (
	"iter"
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
	s.urls()
	s.privateKeys()
	late := func() bool { return !by.IsZero() && time.Now().After(by) }
	if !s.byRules(r.own, nil, late) {
		return "", 0, false
	}
	s.dotted()
	s.headers()
	s.settings()
	s.sort()
	if !s.byRules(r.rules, r.allow, late) {
		return "", 0, false
	}
	text, n = s.replaced()
	return text, n, true
}

// scan is the search for secrets in one text.
type scan struct {
	text  string
	lower string // text with ASCII letters in lower case, so that offsets stay the same
	seen  trigrams
	list  []found
	known int // how many of list are sorted
}

// found is a secret's place in a text.
type found struct {
	start, end int
	id         string
}

func newScan(text string) *scan {
	s := &scan{text: text, lower: lowered(text)}
	s.seen.add(s.lower)
	return s
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

// found notes a secret, unless it was redacted before.
func (s *scan) found(id string, start, end int) {
	if !strings.Contains(s.text[start:end], "[redacted:") {
		s.list = append(s.list, found{start, end, id})
	}
}

// sort sorts the secrets by their places.
func (s *scan) sort() {
	slices.SortStableFunc(s.list, func(a, b found) int { return a.start - b.start })
	s.known = len(s.list)
}

// isFound reports whether a place lies in one of the sorted secrets.
func (s *scan) isFound(at int) bool {
	i := sort.Search(s.known, func(i int) bool { return s.list[i].start > at })
	return i > 0 && at < s.list[i-1].end
}

// replaced returns the text without the secrets, and how many there were. Of two that
// overlap the first stands for both.
func (s *scan) replaced() (string, int) {
	if len(s.list) == 0 {
		return s.text, 0
	}
	s.sort()
	var b strings.Builder
	at, n := 0, 0
	for _, f := range s.list {
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
// of the some 300 keywords need not be searched.
type trigrams [1 << 10]uint64

func trigram(s string) uint32 {
	h := uint32(s[0])<<16 | uint32(s[1])<<8 | uint32(s[2])
	return h * 2654435761 >> 16 // Knuth's multiplicative hash
}

func (t *trigrams) add(s string) {
	for i := 0; i+3 <= len(s); i++ {
		h := trigram(s[i:])
		t[h>>6] |= 1 << (h & 63)
	}
}

func (t *trigrams) mayHold(s string) bool {
	for i := 0; i+3 <= len(s); i++ {
		if h := trigram(s[i:]); t[h>>6]&(1<<(h&63)) == 0 {
			return false
		}
	}
	return true
}
