package inject

import "testing"

// TestOptOut_UnansweredTurn checks that a failed turn loses its block, in later requests
// too, if its person switches memory off and sends it again.
func TestOptOut_UnansweredTurn(t *testing.T) {
	for _, tc := range []struct {
		name string
		mode Mode
		body string
		want bool // the block is repeated
	}{
		{"off", Mode{Reason: ReasonOptOut}, turn1, false},
		{"recall off", Mode{Reason: ReasonOptOut, Ingest: true}, turn1, false},
		{"off amid tools", Mode{Reason: ReasonOptOut}, turn1tool, true},
		{"off by configuration", Mode{}, turn1, true},
		{"on", both, turn1, true},
	} {
		blocks := &fakeDecisions{}
		m := memory(t, always("cat Miso"), blocks)
		ask(t, m, turn1, both)
		want := withBlocks(tc.body, map[string]string{"one": blockOf("cat Miso")})
		if !tc.want {
			want = tc.body
		}
		if got, _ := ask(t, m, tc.body, tc.mode); got != want {
			t.Errorf("%s: got %s, want %s", tc.name, got, want)
		}
		next := map[string]string{"two": blockOf("cat Miso")}
		if tc.want {
			next = map[string]string{"one": blockOf("cat Miso")} // it has the only fact, so "two" has no block
		}
		if got, _ := ask(t, m, turn2, both); got != withBlocks(turn2, next) {
			t.Errorf("%s, next turn: got %s, want %s", tc.name, got, withBlocks(turn2, next))
		}
	}
}

// TestOptOut_IsNotBackfilled checks that a turn with memory off is not stored later.
func TestOptOut_IsNotBackfilled(t *testing.T) {
	blocks := &fakeDecisions{}
	m := memory(t, always(), blocks)
	ask(t, m, turn1, both)
	ask(t, m, turn1, Mode{Reason: ReasonOptOut})
	if _, p := ask(t, m, turn2, both); len(p.Unseen) != 0 {
		t.Errorf("got %d earlier turns to keep, want none", len(p.Unseen))
	}
}

// TestWithdraw checks that a turn continues without a block that the provider refused, in
// later requests too.
func TestWithdraw(t *testing.T) {
	blocks := &fakeDecisions{}
	m := memory(t, always("cat Miso"), blocks)
	_, p := ask(t, m, turn1, both)
	if !p.Unanswered.Exists() {
		t.Fatal("the block of an unanswered turn cannot be withdrawn")
	}
	m.Withdraw(p.Unanswered)
	p.Withdrawn()
	if p.Outcome.Reason != ReasonRefused || len(p.Inserts) != 0 || p.Unanswered.Exists() {
		t.Errorf("got %+v with %d inserts, want reason refused and none", p.Outcome, len(p.Inserts))
	}
	got, p := ask(t, m, turn1, both)
	if got != turn1 || p.Outcome.Reason != ReasonRefused {
		t.Errorf("sent again: got %s, %+v, want no block, reason refused", got, p.Outcome)
	}
	if got, _ := ask(t, m, turn2, both); got != withBlocks(turn2, map[string]string{"two": blockOf("cat Miso")}) {
		t.Errorf("next turn: got %s, want a block of its own only", got)
	}
}

// TestUnanswered_AnsweredTurn checks that the block of a turn with a tool round cannot be
// withdrawn: the provider has accepted it.
func TestUnanswered_AnsweredTurn(t *testing.T) {
	m := memory(t, always("cat Miso"), &fakeDecisions{})
	ask(t, m, turn1, both)
	if _, p := ask(t, m, turn1tool, both); p.Unanswered.Exists() {
		t.Error("the block of an answered turn can be withdrawn")
	}
}
