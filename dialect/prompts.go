package dialect

import (
	"hash/maphash"
	"sync"

	"github.com/graphiti-proxy/graphiti-proxy/dialect/place"
)

// prompts remembers what system prompts state of a place: clients send the same
// long ones with every request, and reading one takes longer than all else that
// is done for it.
var prompts = promptMemo{seed: maphash.MakeSeed()}

// rememberedPrompts bounds each of two generations of prompts.
const rememberedPrompts = 1 << 12

// maxStated bounds, in bytes, what is remembered of one.
const maxStated = 4 << 10

// promptMemo goes by hashes of the prompts as they stand in bodies, with a seed
// that nobody knows: no text can be made up that is taken for another. It is
// safe for concurrent use.
type promptMemo struct {
	seed maphash.Seed

	mu       sync.Mutex // guards what follows
	new, old map[uint64]place.Statements
}

// stated is what a prompt states.
func (p *promptMemo) stated(c *Conversation, m *Message) (s place.Statements) {
	if m.from == m.to {
		return s
	}
	var h maphash.Hash
	h.SetSeed(p.seed)
	for _, s := range c.spans[m.from:m.to] {
		_, _ = h.Write(c.body[s.Start:s.End]) // which never fails
		_ = h.WriteByte('"')                  // which no text holds as it stands in a body
	}
	key := h.Sum64()
	p.mu.Lock()
	s, ok := p.new[key]
	if !ok {
		s, ok = p.old[key]
	}
	p.mu.Unlock()
	if ok {
		return s
	}
	s = c.prompted(m)
	if c.Stopped() != NotStopped || s.Size() > maxStated {
		return s
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.new == nil || len(p.new) >= rememberedPrompts {
		p.old, p.new = p.new, make(map[uint64]place.Statements)
	}
	p.new[key] = s
	return s
}
