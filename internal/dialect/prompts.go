package dialect

import (
	"hash/maphash"

	lru "github.com/hashicorp/golang-lru/v2"
)

const (
	rememberedPrompts = 1 << 12

	// maxStated bounds, in bytes, what is remembered of one.
	maxStated = 4 << 10
)

// prompts remembers what system prompts state of a place: clients send the same
// long ones with every request, and reading one takes longer than all else that
// is done for it.
var prompts = newPromptCache()

// promptCache goes by hashes of the prompts as they stand in bodies, with a seed
// that nobody knows: no text can be made up that is taken for another. It is
// safe for concurrent use.
type promptCache struct {
	seed  maphash.Seed
	known *lru.Cache[uint64, statements]
}

func newPromptCache() *promptCache {
	known, err := lru.New[uint64, statements](rememberedPrompts)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return &promptCache{maphash.MakeSeed(), known}
}

// stated is what a prompt states.
func (p *promptCache) stated(c *Conversation, m *Message) (s statements) {
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
	s, ok := p.known.Get(key)
	if ok {
		return s
	}
	s = c.prompted(m)
	if c.Stopped() == NotStopped && s.size() <= maxStated {
		p.known.Add(key, s)
	}
	return s
}
