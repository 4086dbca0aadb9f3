package embedded

import (
	"bytes"
	"cmp"
	"math/bits"
	"slices"

	"github.com/cespare/xxhash/v2"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti/words"
)

// sketched is the number of a message's first words in its sketch.
const sketched = 16

// messageNote has the properties of a message in the index, apart from the places of its
// words, for ranking the message without reading it.
type messageNote struct {
	Length uint32 // of its text, in bytes
	Day    int32  // of the message, counted from 1970
	Flags  uint16 // isAsking and the others

	words   uint8 // number of words in the sketch
	speaker uint16
	place   uint32
	sketch  sketch
	form    form
}

// formed is the maximum number of words, including function words, of a text with a form:
// longer texts do not recur as routine.
const formed = 20

// form is the set of words of a short text, in any order and with any numbers. A long text
// has the zero form.
type form struct {
	sketch  sketch
	n       uint8          // number of hashes; 0 if the text is too long
	over    bool           // the text is too long
	numbers bool           // it has a number
	hashes  [formed]uint16 // of its words, each once, ascending
}

// say adds a word. All words with a digit count as the same word.
func (f *form) say(w []byte) {
	if f.over {
		return
	}
	f.numbers = f.numbers || '0' <= w[0] && w[0] <= '9'
	if bytes.ContainsAny(w, "0123456789") {
		w = w[:0]
	}
	h := xxhash.Sum64(w)
	at, there := slices.BinarySearch(f.hashes[:f.n], uint16(h)) //nolint:gosec // its lower bits
	switch {
	case there:
	case f.n == formed:
		*f = form{over: true}
	default:
		copy(f.hashes[at+1:f.n+1], f.hashes[at:f.n])
		f.hashes[at] = uint16(h) //nolint:gosec // its lower bits
		f.n++
		f.sketch.add(h)
	}
}

// formOf returns the form of a text.
func formOf(text string) (f form) {
	words.Each(text, func(w []byte, _ words.Significance) bool {
		f.say(w)
		return !f.over
	})
	return f
}

// like returns the share of words that two forms have in common; 0 if one text is too long.
func (f *form) like(o *form) float64 {
	if f.n == 0 || o.n == 0 {
		return 0
	}
	both := f.shared(o)
	return float64(both) / float64(int(f.n)+int(o.n)-both)
}

// shared returns the number of words that two forms have in common.
func (f *form) shared(o *form) (both int) {
	for i, j := uint8(0), uint8(0); i < f.n && j < o.n; {
		switch a, b := f.hashes[i], o.hashes[j]; {
		case a == b:
			both, i, j = both+1, i+1, j+1
		case a < b:
			i++
		default:
			j++
		}
	}
	return both
}

// copies reports whether a newer text is a copy of a statement, also with other numbers or a few
// words more ("Room 17, not 14").
func (f *form) copies(newer *form) bool {
	from := copyFrom
	if !f.numbers && !newer.numbers || f.shared(newer) == int(f.n) {
		from = repeatedFrom
	}
	return f.sketch.mayBeLike(newer.sketch, from) && f.like(newer) >= from
}

// mayBeLike reports, at little cost, whether the forms of two sketches may have this
// likeness. It allows for words that share a bit: they make sketches less alike than the
// forms.
func (s sketch) mayBeLike(o sketch, from float64) bool {
	return 5*float64(bits.OnesCount64(uint64(s&o))) >= 4*from*float64(bits.OnesCount64(uint64(s|o)))
}

// wordCount returns the number of telling words of the message, at most sketched.
func (n *messageNote) wordCount() int { return int(n.words) }

// isNamed reports whether the message's speaker has a name: then it is from a conversation
// between people.
func (n *messageNote) isNamed() bool { return n.speaker != 0 }

// copied reports whether one of the newest messages has the same form, such as an older value: it
// does not make a word common.
func (g *groupIndex) copied(n *messageNote) bool {
	const newest = 1000
	for i, o := range g.forms[max(0, len(g.forms)-newest):] {
		if o == n.form.sketch && n.form.n > 0 && g.notes[max(0, len(g.forms)-newest)+i].form == n.form {
			return true
		}
	}
	return false
}

// sketch is a set of words, with one bit for each.
type sketch uint64

func (s *sketch) add(hash uint64) { *s |= 1 << (hash >> 58) }

// sketchOf returns the sketch of these words.
func sketchOf(words []string) (s sketch) {
	for _, w := range words {
		s.add(xxhash.Sum64String(w))
	}
	return s
}

// otherWords returns the least number of the message's first words that are missing from a
// sketch, and the number of its first words.
func (n *messageNote) otherWords(of sketch) (others, words int) {
	return bits.OnesCount64(uint64(n.sketch &^ of)), int(n.words)
}

// note returns the note of the message at a place.
func (g *groupIndex) note(place int64) (messageNote, bool) {
	g.mu.RLock()
	defer g.mu.RUnlock()
	i, ok := g.noteAt(place)
	if !ok {
		return messageNote{}, false
	}
	return g.notes[i], true
}

// noteAt returns the index of a place's note, or the index to insert it at.
func (g *groupIndex) noteAt(place int64) (i int, ok bool) {
	return slices.BinarySearchFunc(g.notes, place, func(n messageNote, place int64) int { return cmp.Compare(int64(n.place), place) })
}

// spoke reports whether the speaker with a name said a message.
func (g *groupIndex) spoke(name string, n *messageNote) bool {
	g.mu.RLock()
	defer g.mu.RUnlock()
	number := g.speakers[name]
	return number != 0 && number == n.speaker
}

// sketcher makes the sketch of a message, word by word.
type sketcher struct {
	seen  [sketched]uint64
	words int
	sum   sketch
}

func (s *sketcher) add(w []byte) {
	if s.words == sketched {
		return
	}
	if h := xxhash.Sum64(w); !slices.Contains(s.seen[:s.words], h) {
		s.seen[s.words] = h
		s.words++
		s.sum.add(h)
	}
}
