package inject

import "testing"

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
