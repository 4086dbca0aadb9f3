package index

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/cespare/xxhash/v2"
)

// Sketched are the first words of a message that its note has a sketch of.
const Sketched = 16

// Note is what is known of a message beside where its words stand: it need not
// be read to be ranked.
type Note struct {
	Length uint32 // of its text, in bytes
	Day    int32  // on which it was said, counted from 1970 on
	Flags  uint8  // what they mean is the caller's

	words   uint8 // of those in the sketch
	speaker uint16
	place   uint32
	sketch  Sketch
}

// Sketch stands for words, with one bit for each.
type Sketch uint64

func (s *Sketch) add(hash uint64) { *s |= 1 << (hash >> 58) }

// SketchOf is the sketch of these words.
func SketchOf(words []string) (s Sketch) {
	for _, w := range words {
		s.add(xxhash.Sum64String(w))
	}
	return s
}

// Others returns how many of the message's first words are missing from a sketch,
// or fewer, and how many first words there are.
func (n *Note) Others(of Sketch) (others, words int) {
	return bits.OnesCount64(uint64(n.sketch &^ of)), int(n.words)
}

// Note returns what is known of the message at a place.
func (g *Group) Note(place int64) (Note, bool) {
	g.mu.RLock()
	defer g.mu.RUnlock()
	i, ok := g.noteAt(place)
	if !ok {
		return Note{}, false
	}
	return g.notes[i], true
}

// noteAt is where the note of a place stands, or would.
func (g *Group) noteAt(place int64) (i int, ok bool) {
	return slices.BinarySearchFunc(g.notes, place, func(n Note, place int64) int { return cmp.Compare(int64(n.place), place) })
}

// Spoke reports whether somebody has said a message.
func (g *Group) Spoke(name string, n *Note) bool {
	g.mu.RLock()
	defer g.mu.RUnlock()
	number := g.speakers[name]
	return number != 0 && number == n.speaker
}

// sketcher makes the sketch of a message, word by word.
type sketcher struct {
	seen  [Sketched]uint64
	words int
	sum   Sketch
}

func (s *sketcher) add(w []byte) {
	if s.words == Sketched {
		return
	}
	if h := xxhash.Sum64(w); !slices.Contains(s.seen[:s.words], h) {
		s.seen[s.words] = h
		s.words++
		s.sum.add(h)
	}
}
