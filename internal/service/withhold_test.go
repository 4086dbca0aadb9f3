package service

import "testing"

// TestDecisionsAboutAnothersMemoryAreWithheld, whatever brought their turn into the
// conversation.
func TestDecisionsAboutAnothersMemoryAreWithheld(t *testing.T) {
	decision := func(groups ...string) *Decision {
		d := new(Decision)
		for _, g := range groups {
			d.Pieces = append(d.Pieces, Piece{Group: g})
		}
		return d
	}
	x := Explained{Turns: []Turn{{}, {Decision: decision()}, {Decision: decision("josh's", "also")}, {Decision: decision("josh's", "ann's")}}}
	x.withhold(map[string]bool{"ann's": true})
	for i, want := range []bool{false, true, true, false} {
		if got := x.Turns[i].Decision != nil; got != want {
			t.Errorf("turn %d has its decision: %v, want %v", i, got, want)
		}
	}
}
