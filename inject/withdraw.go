package inject

import (
	"context"
	"slices"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
)

// unanswered is the block of a turn that has no answer in its conversation. No provider
// has a prefix with it, so it may still be taken away.
type unanswered struct {
	key      TurnKey
	decision *Decision // nil if the turn has no block, or an answer
	at       int       // offset of the block
	timeout  time.Duration
}

// Withdrawable reports whether the request carries a block that Withdraw can take away.
func (p *Plan) Withdrawable() bool { return p.open.decision != nil }

// Unanswered returns what Withdraw needs of a plan, without the request's bytes.
func (p *Plan) Unanswered() Plan { return Plan{open: p.open} }

// Withdraw takes the newest turn's block out of a plan whose request the provider has
// refused with it. The turn goes on without a block, also when it is sent again. It
// reports false, and changes nothing, when that cannot be stored: a later request would
// repeat the block.
func (m *Memory) Withdraw(p *Plan) bool {
	ctx, cancel := context.WithTimeout(context.Background(), p.open.timeout)
	defer cancel()
	d := *p.open.decision
	d.Block, d.Facts, d.Reason = "", 0, string(ReasonRefused)
	if err := m.opts().Decisions.Drop(ctx, p.open.key, d); err != nil {
		m.opts().Log.Warn("drop a refused block failed", "error", err)
		return false
	}
	took := p.Outcome.Took
	p.Outcome = Outcome{Status: StatusEmpty, Reason: ReasonRefused, Took: took}
	p.Inserts = slices.DeleteFunc(p.Inserts, func(i dialect.Insert) bool { return i.At == p.open.at })
	p.Block, p.open = "", unanswered{}
	return true
}

// optOut drops what was decided for an unanswered turn whose person has switched memory
// off since.
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
