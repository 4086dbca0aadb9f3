package proxy

import (
	"container/list"
	"sync"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/dialect"
)

const (
	roundsMax   = 1 << 13
	roundsBytes = 32 << 20 // of what was said and done in them

	// roundsFor is how long a round is remembered: a person may be asked
	// before a tool is used.
	roundsFor = 2 * time.Hour
)

// rounds remembers the turns in which tools are at work while the provider
// holds the conversation: the next request brings their results and does not
// say to which turn they belong, but by a reference. It is safe for concurrent
// use.
type rounds struct {
	mu    sync.Mutex // guards what follows
	known map[dialect.Fingerprint]*list.Element
	order list.List // of *round, the oldest first
	bytes int
}

// round is a turn that goes on with a request of that reference.
type round struct {
	reference dialect.Fingerprint
	pending   pendingTurn
	since     time.Time
	bytes     int
}

// put remembers a turn whose last answer, with this id, called tools.
func (r *rounds) put(p *pendingTurn, answer string) {
	var none dialect.Fingerprint
	r.mu.Lock()
	defer r.mu.Unlock()
	if answer != "" {
		r.putLocked(reference(p.at.person, answer), p)
	}
	if p.held != none {
		r.putLocked(p.held, p)
	}
}

func (r *rounds) putLocked(reference dialect.Fingerprint, p *pendingTurn) {
	if r.known == nil {
		r.known = make(map[dialect.Fingerprint]*list.Element)
	}
	if old := r.known[reference]; old != nil {
		r.dropLocked(old)
	}
	n := &round{reference: reference, pending: *p, since: time.Now(), bytes: len(p.turn.User) + len(p.work)}
	n.pending.turn.Assistant = "" // the answer to come is written there
	r.known[reference] = r.order.PushBack(n)
	r.bytes += n.bytes
	for r.order.Len() > 0 && (r.order.Len() > roundsMax || r.bytes > roundsBytes || time.Since(roundIn(r.order.Front()).since) > roundsFor) {
		r.dropLocked(r.order.Front())
	}
}

func (r *rounds) dropLocked(at *list.Element) {
	n := roundIn(at)
	r.order.Remove(at)
	delete(r.known, n.reference)
	r.bytes -= n.bytes
}

func roundIn(at *list.Element) *round { return at.Value.(*round) } //nolint:forcetypeassert // the list's only type

// of returns the turn that a request goes on with that holds nothing of a person;
// nil when it is not known, or was begun elsewhere.
func (r *rounds) of(c *dialect.Conversation, at *where) *pendingTurn {
	for _, f := range []dialect.Field{dialect.FieldPreviousResponseID, dialect.FieldConversation} {
		if id := c.Field(f); id != nil {
			if p := r.find(at.person.Link(dialect.RoleOther, id)); p != nil && (p.at.here == at.here || !at.says && at.base == at.person) {
				return p
			}
		}
	}
	return nil
}

// find returns a copy.
func (r *rounds) find(reference dialect.Fingerprint) *pendingTurn {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := r.known[reference]
	if at == nil {
		return nil
	}
	if time.Since(roundIn(at).since) > roundsFor {
		r.dropLocked(at)
		return nil
	}
	p := roundIn(at).pending
	return &p
}

// fetched is the turn whose answer, made in the background, is fetched with this
// request; nil where it is not known.
func (s *Server) fetched(c *call) *pendingTurn {
	h := c.head
	if !c.body.Whole || c.memory.Planner == nil || s.rounds.empty() { // else the head may still grow a trailer
		return nil
	}
	caller := c.memory.Identity.Identify(&c.says, h, &c.conv)
	if !caller.Known {
		return nil
	}
	p := s.rounds.find(reference(rootOf(&caller.Who), c.route.match.ID))
	if p != nil {
		p.awaited = true
	}
	return p
}

func (r *rounds) empty() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.known) == 0
}
