package proxy

import (
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
