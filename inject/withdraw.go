package inject

import (
	"context"
	"slices"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
)

// Unanswered is the block of a turn without an answer. No provider has cached a prefix with
// it, so it can still be withdrawn. The zero value has no block.
type Unanswered struct {
	key      TurnKey
	decision *Decision // nil if the turn has no block, or has an answer
	at       int       // offset of the block
	timeout  time.Duration
}

// Exists reports whether there is a block to withdraw.
func (u Unanswered) Exists() bool { return u.decision != nil }

// Withdraw removes the newest turn's block after the provider rejected the request with it:
// retries of the turn have no block either. It reports false and changes nothing if it
// cannot store that, because a later request would repeat the block.
func (m *Planner) Withdraw(u Unanswered) bool {
	ctx, cancel := context.WithTimeout(context.Background(), u.timeout)
	defer cancel()
	d := *u.decision
	d.Block, d.Facts, d.Reason = "", 0, string(ReasonRefused)
	if err := m.opts().Decisions.Drop(ctx, u.key, d); err != nil {
		m.opts().Log.Warn("drop refused block failed", "error", err)
		return false
	}
	return true
}

// Withdrawn changes the plan after Withdraw has removed its block.
func (p *Plan) Withdrawn() {
	p.Outcome = Outcome{Status: StatusEmpty, Reason: ReasonRefused, Took: p.Outcome.Took}
	p.Inserts = slices.DeleteFunc(p.Inserts, func(i dialect.Insert) bool { return i.At == p.Unanswered.at })
	p.Block, p.Unanswered = "", Unanswered{}
}

// optOut replaces the decision of an unanswered turn after the person disables memory.
func (m *Planner) optOut(t *turn, made *Decision) {
	ctx, cancel := context.WithDeadline(context.Background(), t.until)
	defer cancel()
	d := *made
	d.Block, d.Facts, d.Reason, d.Ingest = "", 0, string(t.mode.Reason), t.mode.Ingest
	if err := t.o.Decisions.Drop(ctx, t.key(), d); err != nil {
		t.o.Log.Warn("drop a block failed, a later request may repeat it", "error", err)
	}
	t.decision = &d
}

// isOptOut reports whether the person has switched memory off for a turn that no answer
// follows. After an answer, such as one that calls tools, the prefix must stay.
func (t *turn) isOptOut() bool {
	return !t.mode.Recall && t.mode.Reason == ReasonOptOut && !t.c.Answered()
}
