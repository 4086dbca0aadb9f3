package proxy

import (
	"context"
	"log/slog"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture"
	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
	"github.com/graphiti-proxy/graphiti-proxy/internal/memo"
)

const (
	// roundsFor is how long a reference to an answer stays valid: a client may ask the person before
	// it uses a tool.
	roundsFor = 2 * time.Hour

	maxRounds      = 64 << 20 // bytes of turns that requests can refer to
	referenceBytes = 1 << 10  // approximate size of one without its texts
)

// PendingTurns are the turns that have not ended. If the provider holds a conversation,
// a request with the results of tools has only a reference to its turn.
type PendingTurns struct {
	*capture.PendingTurns
	rounds *memo.LRU[dialect.Fingerprint, openRound]
}

// openRound is a turn for requests that refer to its answer.
type openRound struct {
	turn pendingTurn
	at   time.Time
}

// NewPendingTurns returns pending turns that call keep with a turn after no request of
// the turn has arrived for the time after.
func NewPendingTurns(after time.Duration, keep func(context.Context, ledger.Turn) error, log *slog.Logger) *PendingTurns {
	return &PendingTurns{capture.NewPending(after, keep, log), memo.NewLRU[dialect.Fingerprint, openRound](maxRounds)}
}

// find returns the turn of a request with a reference.
func (d *PendingTurns) find(reference dialect.Fingerprint) (turn pendingTurn, ok bool) {
	if d == nil {
		return turn, false
	}
	if r, ok := d.rounds.Get(reference); ok && time.Since(r.at) <= roundsFor {
		return r.turn, true
	}
	return turn, false
}

// Referable reports whether a request can refer to any turn.
func (d *PendingTurns) Referable() bool {
	n, _ := d.rounds.Held()
	return n > 0
}

// goesOn makes the turn available to requests that refer to its last answer, by the
// answer's id, or to its conversation.
func (p *pendingTurn) goesOn(answer string) {
	next := openRound{*p, time.Now()}
	next.turn.turn.Assistant, next.turn.round = "", nil // the next request and its answer set them
	size := referenceBytes + len(p.turn.User)
	for i := range p.calls {
		size += len(p.calls[i].Arguments)
	}
	if answer != "" {
		p.memory.Pending.rounds.Add(p.at.person.Reference(answer), next, size)
	}
	if p.held != (dialect.Fingerprint{}) {
		p.memory.Pending.rounds.Add(p.held, next, size)
	}
}

// referredBy returns the conversation object of the turn, or else its caller: their later
// requests may refer to its answer.
func (p *pendingTurn) referredBy() dialect.Fingerprint {
	if p.held != (dialect.Fingerprint{}) {
		return p.held
	}
	return p.at.person
}

// fetched returns the turn with the background answer that this request fetches; nil if
// unknown.
func (s *Server) fetched(c *call) *pendingTurn {
	if !c.body.Whole || c.memory.Planner == nil || !c.memory.Pending.Referable() { // until the body ends, a trailer may change the head
		return nil
	}
	caller := c.identify()
	if !caller.Known {
		return nil
	}
	p, ok := c.memory.Pending.find(rootOf(&caller.Who).Reference(c.route.ID))
	if !ok {
		return nil
	}
	p.awaited = true
	return &p
}
