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

// Withdraw removes the newest turn's block from later requests, after the provider refused
// the request with it and accepted the request without it.
func (m *Planner) Withdraw(u Unanswered) {
	ctx, cancel := context.WithTimeout(context.Background(), u.timeout)
	defer cancel()
	m.drop(ctx, u.key, u.decision, ReasonRefused)
}

// drop replaces a decision by one without a block, and returns that. If it cannot be stored,
// another process may repeat the block.
func (m *Planner) drop(ctx context.Context, key TurnKey, made *Decision, why Reason) *Decision {
	d := *made
	d.Block, d.Facts, d.Reason = "", 0, string(why)
	if err := m.opts().Decisions.Drop(ctx, key, d); err != nil {
		m.opts().Log.Warn("drop a block failed, a later request may repeat it", "error", err)
	}
	return &d
}

// Withdrawn removes the block of an unanswered turn from the plan.
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
	d.Ingest = t.mode.Ingest
	t.decision = m.drop(ctx, t.key(), &d, t.mode.Reason)
}

// isOptOut reports whether the person has switched memory off for a turn that no answer
// follows. After an answer, such as one that calls tools, the prefix must stay.
func (t *turn) isOptOut() bool {
	return !t.mode.Recall && t.mode.Reason == ReasonOptOut && !t.c.Answered()
}
