package inject

import "sync"

// handled remembers the turns that this process knows of, the last ones. It is
// safe for concurrent use.
type handled struct {
	mu       sync.Mutex // guards what follows
	new, old map[Key]struct{}
}

// handledMax bounds each of two generations of turns.
const handledMax = 1 << 16

func (h *handled) add(k Key) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.new == nil || len(h.new) >= handledMax {
		h.old, h.new = h.new, make(map[Key]struct{})
	}
	h.new[k] = struct{}{}
}

func (h *handled) has(k Key) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, ok := h.new[k]
	if !ok {
		_, ok = h.old[k]
	}
	return ok
}

func (h *handled) remove(k Key) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.new, k)
	delete(h.old, k)
}
