package wire

import (
	"context"
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
}

// watch registers a link until forget. Its client's connection must stay open
// in between, or the descriptor could belong to another.
func (h *hangups) watch(l *link, client socket) {
	if client == noSocket {
		return
	}
	h.mu.Lock()
	h.links = append(h.links, l)
	l.watched, l.sock = len(h.links), client
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
	last := len(h.links) - 1
	h.links[l.watched-1] = h.links[last]
	h.links[last].watched = l.watched
	h.links[last] = nil
	h.links, l.watched = h.links[:last], 0
}

// look checks all clients once, and ends the exchanges of those that have left. It
// reports whether there are any.
func (h *hangups) look() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.idle = len(h.links) == 0
	if !h.idle {
		haveLeft(h.links, (*link).abandon)
	}
	return !h.idle
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

// run checks the clients until open ends, and calls each behind it. While there are no
// requests it only waits.
func (h *hangups) run(open context.Context, each func()) {
	t := time.NewTicker(hangupInterval)
	defer t.Stop()
	for {
		select {
		case <-open.Done():
			return
		case <-t.C:
			if !h.look() {
				t.Stop()
			}
			each()
		case <-h.wake:
			t.Reset(hangupInterval)
		}
	}
}

// link ends the upstream's part of an exchange when its client leaves. It is safe for
// concurrent use.
type link struct {
	watched int    // index in hangups, plus one; guarded by hangups.mu
	sock    socket // whose end is watched for; guarded by hangups.mu

	mu        sync.Mutex    // guards what follows
	gone      bool          // the client left, or the server stops
	up        *upstreamConn // closed when the client leaves
	streaming *stream       // cut instead, when it goes on without its exchange
}

// Gone reports whether the client has left, or the server stops.
func (l *link) Gone() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.gone
}

// abandon ends the upstream's part of the exchange.
func (l *link) abandon() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.gone = true
	switch {
	case l.streaming != nil:
		l.streaming.cut()
	case l.up != nil:
		_ = rawConn(l.up.Conn).Close() // without a word, which could take time
	}
}

// attach sets the connection that abandon closes. It reports whether the client is
// still there.
func (l *link) attach(up *upstreamConn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.up = up
	return !l.gone
}

// detach takes the connection away from abandon, and reports whether abandon has not
// closed it yet.
func (l *link) detach() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.up, l.streaming = nil, nil
	return !l.gone
}
