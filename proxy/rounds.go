package proxy

import (
	"bytes"
	"encoding/json"
	"sync"

	"github.com/graphiti-proxy/graphiti-proxy/inject"
)

// roundsMax bounds each of two generations of rounds.
const roundsMax = 1 << 12

// rounds remembers the turns in which tools are at work while the provider
// holds the conversation: the next request brings their results and does not
// say to which turn they belong, but by a reference. It is safe for concurrent
// use.
type rounds struct {
	mu       sync.Mutex // guards what follows
	new, old map[inject.Fingerprint]*ending
}

// put remembers a turn whose last answer, with this id, called tools.
func (r *rounds) put(e *ending, answer string) {
	var none inject.Fingerprint
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.new == nil || len(r.new) >= roundsMax {
		r.old, r.new = r.new, make(map[inject.Fingerprint]*ending)
	}
	if answer != "" {
		r.new[e.reference(answer)] = e
	}
	if e.held != none {
		r.new[e.held] = e
	}
}

// of returns how the turn is to end with which a request goes on that holds
// nothing of a person; nil when it is not known.
func (r *rounds) of(c *inject.Conversation, root inject.Fingerprint) *ending {
	for _, f := range []inject.Field{inject.FieldPreviousResponseID, inject.FieldConversation} {
		if id := c.Field(f); id != nil {
			if e := r.find(root.Link(inject.RoleOther, id)); e != nil {
				another := *e // the answer to come is written into it
				another.turn.Assistant = ""
				return &another
			}
		}
	}
	return nil
}

func (r *rounds) find(f inject.Fingerprint) *ending {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e := r.new[f]; e != nil {
		return e
	}
	return r.old[f]
}

// fetched is how the turn is to end whose answer, made in the background, is
// fetched with this request: GET …/responses/{id}. It is nil for all others.
func (s *Server) fetched(c *call) *ending {
	h := &c.ctx.Request.Header
	if !h.IsGet() || c.memory.Planner == nil {
		return nil
	}
	path, _, _ := bytes.Cut(h.RequestURI(), []byte{'?'})
	before, id, ok := bytes.Cut(path, []byte("/responses/"))
	if !ok || len(before) > 64 || len(id) == 0 || len(id) > 128 || bytes.IndexByte(id, '/') >= 0 || s.rounds.empty() {
		return nil
	}
	caller := c.memory.Identity.who(&c.says, h, &c.conv)
	if !caller.Known {
		return nil
	}
	b, err := json.Marshal(string(id))
	if err != nil {
		return nil
	}
	e := s.rounds.find(rootOf(&caller.Who).Link(inject.RoleOther, b))
	if e == nil {
		return nil
	}
	another := *e
	another.turn.Assistant, another.awaited = "", true
	return &another
}

func (r *rounds) empty() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.new)+len(r.old) == 0
}
