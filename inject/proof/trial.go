package proof

import (
	"encoding/binary"
	"slices"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti/words"
)

// The reasons to leave a trial out of the comparison.
const (
	leftAsked  = "left out: asked for memory"
	leftBefore = "left out: had memory before"
)

// trial is the record of a conversation in an experiment. It has no text.
type trial struct {
	Withheld bool       `json:"withheld,omitempty"`
	Half     bool       `json:"half,omitempty"`   // random half, to compare both halves of an arm
	Person   []byte     `json:"person,omitempty"` // hash of the owner
	Began    time.Time  `json:"began,omitzero"`
	Last     time.Time  `json:"last,omitzero"`   // of the last event
	Left     string     `json:"left,omitempty"`  // reason to leave it out
	Lines    [][]uint32 `json:"lines,omitempty"` // hashed content words of shown or withheld lines

	Told      bool  `json:"told,omitempty"`      // the person said a line again
	Corrected bool  `json:"corrected,omitempty"` // the person changed a statement after an answer
	Turns     int   `json:"turns,omitempty"`
	Rounds    int   `json:"rounds,omitempty"`
	Tokens    int64 `json:"tokens,omitempty"`
}

// Limits of a trial's lines. A sentence says a line if it has toldShare of the line's content words,
// and at least fewestTold.
const (
	maxLines   = 48
	maxWords   = 64
	toldShare  = 0.75
	fewestTold = 3
)

// add judges an event by the lines of earlier turns, then adds its own lines.
func (t *trial) add(e *Event) {
	t.Last, t.Rounds, t.Tokens = time.Now().UTC(), t.Rounds+e.Rounds, t.Tokens+e.Tokens
	if e.Asked && t.Left == "" {
		t.Left = leftAsked
	}
	if e.Text != "" {
		if t.Turns++; t.Turns > 1 {
			t.Told = t.Told || t.isSaid(e.Text)
			t.Corrected = t.Corrected || words.States(e.Text) && words.Changes(e.Text)
		}
	}
	for _, l := range e.Lines {
		if of := contents(l); len(of) >= fewestTold && len(t.Lines) < maxLines {
			t.Lines = append(t.Lines, of)
		}
	}
}

// isSaid reports whether a sentence of a text states one of the lines.
func (t *trial) isSaid(text string) bool {
	for s := range words.Sentences(text) {
		if words.AsksSomething(s) {
			continue
		}
		said := contents(s)
		for _, line := range t.Lines {
			shared := 0
			for _, w := range line {
				if slices.Contains(said, w) {
					shared++
				}
			}
			if shared >= fewestTold && float64(shared) >= toldShare*float64(len(line)) {
				return true
			}
		}
	}
	return false
}

// contents returns the hashes of a text's content words.
func contents(text string) (of []uint32) {
	words.Each(text, func(w []byte, k words.Significance) bool {
		if k == words.Content {
			of = append(of, binary.BigEndian.Uint32(digest("word", string(w))))
		}
		return len(of) < maxWords
	})
	slices.Sort(of)
	return slices.Compact(of)
}
