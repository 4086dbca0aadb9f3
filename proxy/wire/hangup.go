package wire

import (
	"sync"
	"time"
)

// hangupInterval is how often hangups checks the clients of requests in flight. A
// client that leaves ends its upstream request within this time.
const hangupInterval = 250 * time.Millisecond

// hangups notices clients that leave while their request is in flight, also
// while the upstream is silent, when neither a read nor a write would tell.
// One question to the kernel serves all requests: no goroutine, no timer and
// no read per request.
//
// A client that shuts only its sending side counts as gone, as it does for
// nginx: requests are registered when they have been read to their end.
type hangups struct {
	wake chan struct{} // a request came while there were none; a second wake would say nothing new

	mu    sync.Mutex // guards what follows; held while the sockets are checked
	idle  bool       // run waits for wake: there is no request
	links []*link
	socks []socket // of their clients
	gone  []bool
}

// watch registers a link until forget. Its client's connection must stay open
// in between, or the descriptor could belong to another.
func (h *hangups) watch(l *link, client socket) {
	if !client.known() {
		return
	}
	h.mu.Lock()
	l.watched = len(h.links) + 1
	h.links = append(h.links, l)
	h.socks = append(h.socks, client)
	idle := h.idle
	h.idle = false
	h.mu.Unlock()
	if idle {
		select {
		case h.wake <- struct{}{}:
		default:
		}
	}
}

func (h *hangups) forget(l *link) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if l.watched == 0 {
		return
	}
	i, last := l.watched-1, len(h.links)-1
	h.links[i], h.socks[i] = h.links[last], h.socks[last]
	h.links[i].watched = i + 1
	h.links[last] = nil
	h.links, h.socks = h.links[:last], h.socks[:last]
	l.watched = 0
}

// look checks all clients once, and ends the exchanges of those that have left. It
// reports whether exchanges remain.
func (h *hangups) look() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.links) == 0 {
		h.idle = true
		return false
	}
	if cap(h.gone) < len(h.socks) {
		h.gone = make([]bool, 2*len(h.socks))
	}
	gone := h.gone[:len(h.socks)]
	clear(gone)
	markLeft(h.socks, gone)
	for i, g := range gone {
		if g {
			h.links[i].abandon()
		}
	}
	return true
}

func (h *hangups) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.links)
}

// abandonAll ends every exchange.
func (h *hangups) abandonAll() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, l := range h.links {
		l.abandon()
	}
}

// run checks the clients until stop is closed. While there are none it only waits.
func (h *hangups) run(stop <-chan struct{}) {
	t := time.NewTicker(hangupInterval)
	defer t.Stop()
	for {
		select {
		case <-stop:
			return
		case <-t.C:
			if !h.look() {
				t.Stop()
			}
		case <-h.wake:
			t.Reset(hangupInterval)
		}
	}
}
