package proxy

import (
	"context"
	"log/slog"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/capture/pending"
	"github.com/graphiti-proxy/graphiti-proxy/dialect"
)

// PendingTurns are the turns whose end is awaited. While the provider holds a
// conversation, the request that brings the results of tools does not say to
// which turn they belong, but by a reference.
type PendingTurns = pending.Turns[pendingTurn]

// NewPendingTurns keeps with keep the turns of which nothing is heard for a while.
func NewPendingTurns(after time.Duration, keep func(context.Context, ledger.Turn) error, log *slog.Logger) *PendingTurns {
	return pending.New[pendingTurn](after, keep, log)
}

// goesOn has the requests find the turn that refer to its last answer, which has
// this id, or to its conversation.
func (p *pendingTurn) goesOn(answer string) {
	var none dialect.Fingerprint
	var references []dialect.Fingerprint
	if answer != "" {
		references = append(references, reference(p.at.person, answer))
	}
	if p.held != none {
		references = append(references, p.held)
	}
	if len(references) == 0 {
		return
	}
	round := *p
	round.turn.Assistant = "" // the answer to come is written there
	p.memory.Pending.Refer(&p.turn, round, len(p.turn.User)+len(p.work), references...)
}

// continues returns the turn that a request goes on with that holds nothing of a
// person; nil when it is not known, or was begun elsewhere.
func (r *request) continues(at *where) *pendingTurn {
	for _, f := range []dialect.Field{dialect.FieldPreviousResponseID, dialect.FieldConversation} {
		if id := r.conv.Field(f); id != nil {
			p, ok := r.memory.Pending.Find(at.person.Link(dialect.RoleOther, id))
			if ok && (p.at.here == at.here || !at.says && at.base == at.person) {
				return &p
			}
		}
	}
	return nil
}

// fetched is the turn whose answer, made in the background, is fetched with this
// request; nil where it is not known.
func (s *Server) fetched(c *call) *pendingTurn {
	h := c.head
	if !c.body.Whole || c.memory.Planner == nil || !c.memory.Pending.Referable() { // else the head may still grow a trailer
		return nil
	}
	caller := c.memory.Identity.Identify(&c.says, h, &c.conv)
	if !caller.Known {
		return nil
	}
	p, ok := c.memory.Pending.Find(reference(rootOf(&caller.Who), c.route.match.ID))
	if !ok {
		return nil
	}
	p.awaited = true
	return &p
}
