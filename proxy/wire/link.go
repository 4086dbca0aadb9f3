package wire

import (
	"sync"
)

// link is what ends of an exchange when its client leaves. It is safe for
// concurrent use.
type link struct {
	watched int // position in hangups, plus one; guarded by hangups.mu

	mu     sync.Mutex // guards what follows
	gone   bool       // the client left, or the server stops
	up     *Conn      // closed when the client leaves
	stream *Stream    // cut instead, where it has gone on without its exchange
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
	case l.stream != nil:
		l.stream.Cut()
	case l.up != nil:
		_ = rawConn(l.up.Conn).Close() // without a word, which could take time
	}
}

// attach makes up the connection that abandon closes. It reports whether the
// client is still there.
func (l *link) attach(up *Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.up = up
	return !l.gone
}

// detach takes the connection out of abandon's reach, and reports whether
// abandon has not closed it.
func (l *link) detach() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.up, l.stream = nil, nil
	return !l.gone
}
