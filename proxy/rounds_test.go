package proxy

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/dialect"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

func heldTurn(said, group string) *pendingTurn {
	return &pendingTurn{turn: ledger.Turn{ID: said, User: said, Assistant: "an answer", Targets: []graphiti.Target{{Group: group}}}}
}

func (r *rounds) knows(e *pendingTurn, answer string) bool {
	return r.find(reference(e.at.person, answer)) != nil
}

// TestRoundsAreBounded by their bytes, their number and their age.
func TestRoundsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r rounds
		big := heldTurn(strings.Repeat("x", roundsBytes/4), "g")
		for i := range 9 {
			r.put(big, fmt.Sprint(i))
		}
		if r.bytes > roundsBytes || r.knows(big, "4") || !r.knows(big, "8") {
			t.Errorf("%d bytes in %d rounds", r.bytes, len(r.known))
		}
		huge := heldTurn(strings.Repeat("x", roundsBytes+1), "g")
		if r.put(huge, "huge"); r.knows(huge, "huge") {
			t.Error("more than all of them may take is kept")
		}
		small := heldTurn("hello", "h")
		for i := range roundsMax + 10 {
			r.put(small, fmt.Sprint("small", i))
		}
		if len(r.known) > roundsMax || r.order.Len() != len(r.known) || r.knows(small, "small0") {
			t.Errorf("%d rounds, %d in order", len(r.known), r.order.Len())
		}
		small.held = dialect.Root("", "somebody")
		r.put(small, "last")
		r.put(small, "last")
		if e := r.find(small.held); e == nil || e.turn.User != "hello" || e.turn.Assistant != "" {
			t.Errorf("%+v", e)
		}
		r.put(big, "mine")
		time.Sleep(roundsFor + time.Second)
		if r.knows(big, "mine") {
			t.Error("it does not end")
		}
		r.put(small, "later")
		if len(r.known) != 2 || r.bytes != 2*len("hello") {
			t.Errorf("%d rounds in %d bytes", len(r.known), r.bytes)
		}
	})
}
