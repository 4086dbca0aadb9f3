package wire

import "sync"

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
