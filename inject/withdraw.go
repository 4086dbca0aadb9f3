package inject

import (
	"context"
	"slices"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
)

// unanswered is the block of a turn without an answer. No provider has cached a prefix with
// it, so it can still be withdrawn.
type unanswered struct {
	key      TurnKey
	decision *Decision // nil if the turn has no block, or has an answer
	at       int       // offset of the block
	timeout  time.Duration
}

// Withdrawable reports whether Withdraw can remove a block from the request.
func (p *Plan) Withdrawable() bool { return p.open.decision != nil }

// Unanswered returns the part of a plan that Withdraw needs, without the request's bytes.
func (p *Plan) Unanswered() Plan { return Plan{open: p.open} }

// Withdraw removes the newest turn's block after the provider rejected the request with it.
// Retries of the turn have no block either. It reports false and changes nothing if it
// cannot store that, because a later request would repeat the block.
func (m *Memory) Withdraw(p *Plan) bool {
	ctx, cancel := context.WithTimeout(context.Background(), p.open.timeout)
	defer cancel()
	d := *p.open.decision
	d.Block, d.Facts, d.Reason = "", 0, string(ReasonRefused)
	if err := m.opts().Decisions.Drop(ctx, p.open.key, d); err != nil {
		m.opts().Log.Warn("drop refused block failed", "error", err)
		return false
	}
	took := p.Outcome.Took
	p.Outcome = Outcome{Status: StatusEmpty, Reason: ReasonRefused, Took: took}
	p.Inserts = slices.DeleteFunc(p.Inserts, func(i dialect.Insert) bool { return i.At == p.open.at })
	p.Block, p.open = "", unanswered{}
	return true
}

// optOut replaces the decision of an unanswered turn after the person disables memory.
func (m *Memory) optOut(t *turn, made *Decision) {
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
