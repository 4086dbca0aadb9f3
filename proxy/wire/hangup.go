package wire

import (
	"sync"
	"time"
)

// hangupInterval is the time between checks for disconnected clients. The upstream
// request of a disconnected client ends within this time.
const hangupInterval = 250 * time.Millisecond

// hangups detects clients that disconnect during their request, even while the
// upstream is silent and no read or write would notice. One system call checks
// all requests, without a goroutine, timer or read per request.
//
// A client that shuts down only its sending side counts as disconnected, as with
// nginx: requests are registered after they were read completely.
type hangups struct {
	mu      sync.Mutex // protects the fields below; held while the sockets are checked
	links   []*link
	looking bool // look will be called
}

// watch registers a link until forget. The caller keeps the client's connection open
// until then, because a descriptor could be reused.
func (h *hangups) watch(l *link, client socket) {
	if client == noSocket {
		return
	}
	h.mu.Lock()
	h.links = append(h.links, l)
	l.watched, l.sock = len(h.links), client
	if !h.looking {
		h.looking = true
		time.AfterFunc(hangupInterval, h.look)
	}
	h.mu.Unlock()
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

// look ends the exchanges of disconnected clients, every hangupInterval while there are links.
func (h *hangups) look() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.looking = len(h.links) > 0; h.looking {
		haveLeft(h.links, (*link).abandon)
		time.AfterFunc(hangupInterval, h.look)
	}
}

// abandonAll ends every exchange.
func (h *hangups) abandonAll() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, l := range h.links {
		l.abandon()
	}
}

// link ends the upstream side of an exchange when its client disconnects. It is safe for
// concurrent use.
type link struct {
	watched int    // index in hangups, plus one; guarded by hangups.mu
	sock    socket // the client's socket; guarded by hangups.mu

	mu   sync.Mutex    // protects the fields below
	gone bool          // the client disconnected, or the server is stopping
	up   *upstreamConn // closed when the client leaves
}

// Gone reports whether the client has disconnected or the server is stopping.
func (l *link) Gone() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.gone
}

// abandon ends the upstream side of the exchange.
func (l *link) abandon() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.gone = true
	if l.up != nil {
		_ = rawConn(l.up.Conn).Close() // without TLS's closing alert, which could block
	}
}

// attach sets the connection that abandon closes. It reports whether the client is still
// connected.
func (l *link) attach(up *upstreamConn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.up = up
	return !l.gone
}

// detach makes abandon forget the connection, and reports whether abandon has not closed
// it yet.
func (l *link) detach() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.up = nil
	return !l.gone
}
