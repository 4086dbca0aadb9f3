package wire

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
	wake chan struct{} // a request came while there were none; more than one wake says nothing new

	mu    sync.Mutex // guards what follows; held while the sockets are asked
	idle  bool       // nobody looks, for there is nothing to look at
	links []*link
	socks []Socket // of their clients
	gone  []bool
}

// watch registers a link until forget. Its client's connection must stay open
// in between, or the descriptor could belong to another.
func (h *hangups) watch(l *link, client Socket) {
	if !client.Known() {
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

// look asks once, and ends the exchanges whose clients have left. It reports
// whether there are any.
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

// run looks at the clients until stop is closed. While there are none it does
// not look at all.
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
