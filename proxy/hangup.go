package proxy

import (
	"sync"
	"time"
)

// hangupInterval is how often the clients of requests in flight are looked
// at. A client that leaves ends its upstream request within this time.
const hangupInterval = 250 * time.Millisecond

// hangups notices clients that leave while their request is in flight, also
// while the upstream is silent, when neither a read nor a write would tell.
// One question to the kernel serves all requests: no goroutine, no timer and
// no read per request.
//
// A client that shuts only its sending side counts as gone, as it does for
// nginx: requests are registered when they have been read to their end.
type hangups struct {
	mu    sync.Mutex // guards what follows; held while the sockets are asked
	calls []*call
	socks []socket
	gone  []bool
}

// watch registers a call until forget. Its client's connection must stay open
// in between, or the descriptor could belong to another.
func (h *hangups) watch(c *call) {
	if c.client.sock.fd < 0 {
		return
	}
	h.mu.Lock()
	c.watched = len(h.calls) + 1
	h.calls = append(h.calls, c)
	h.socks = append(h.socks, c.client.sock)
	h.mu.Unlock()
}

func (h *hangups) forget(c *call) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if c.watched == 0 {
		return
	}
	i, last := c.watched-1, len(h.calls)-1
	h.calls[i], h.socks[i] = h.calls[last], h.socks[last]
	h.calls[i].watched = i + 1
	h.calls[last] = nil
	h.calls, h.socks = h.calls[:last], h.socks[:last]
	c.watched = 0
}

// look asks once, and ends the calls whose clients have left.
func (h *hangups) look() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.calls) == 0 {
		return
	}
	if cap(h.gone) < len(h.socks) {
		h.gone = make([]bool, 2*len(h.socks))
	}
	gone := h.gone[:len(h.socks)]
	clear(gone)
	left(h.socks, gone)
	for i, g := range gone {
		if g {
			h.calls[i].abandon()
		}
	}
}

// abandonAll ends every call.
func (h *hangups) abandonAll() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range h.calls {
		c.abandon()
	}
}

// run looks at the clients until stop is closed.
func (h *hangups) run(stop <-chan struct{}) {
	t := time.NewTicker(hangupInterval)
	defer t.Stop()
	for {
		select {
		case <-stop:
			return
		case <-t.C:
			h.look()
		}
	}
}
