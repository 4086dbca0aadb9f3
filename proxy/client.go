package proxy

import (
	"crypto/tls"
	"net"
	"os"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
)

// clientConn is a client's connection under fasthttp's server. Answers are
// written past the server, straight to the connection, because fasthttp can
// neither relay bytes as they are nor end a stream that was cut off; what the
// server itself would then answer is swallowed.
type clientConn struct {
	net.Conn
	sock  socket
	muted bool // owned by the goroutine that serves the connection

	patience time.Duration // longest wait for one read of a body, or one write
	writeBy  time.Time     // the deadline in force, renewed by extend

	inBody  bool        // the server reads a body
	stopped atomic.Bool // the body's rest is not wanted any more
}

// beginBody gives each read a deadline of its own, so that a slow client may
// take its time with a body but a silent one may not.
func (c *clientConn) beginBody() { c.inBody = true }

func (c *clientConn) endBody() { c.inBody = false }

// stopBody ends a read that another goroutine waits in, and all later ones.
func (c *clientConn) stopBody() {
	c.stopped.Store(true)
	_ = c.SetReadDeadline(time.Unix(1, 0))
}

// Read reads for the server.
func (c *clientConn) Read(p []byte) (int, error) {
	if c.inBody {
		if err := c.SetReadDeadline(time.Now().Add(c.patience)); err != nil {
			return 0, err
		}
		// After the deadline was set: stopBody sets its own after the flag, so
		// one of the two is seen.
		if c.stopped.Load() {
			return 0, os.ErrDeadlineExceeded
		}
	}
	return c.Conn.Read(p)
}

// Write writes for the server.
func (c *clientConn) Write(p []byte) (int, error) {
	if c.muted {
		return len(p), nil
	}
	if err := c.send(p); err != nil {
		return 0, err
	}
	return len(p), nil
}

// send writes a piece of an answer past the server.
func (c *clientConn) send(p []byte) error {
	if by, renewed := extend(c.writeBy, c.patience); renewed {
		c.writeBy = by
		if err := c.SetWriteDeadline(by); err != nil {
			return err
		}
	}
	_, err := c.Conn.Write(p)
	return err
}

// extend returns the deadline of a wait that begins now and may take as long
// as patience: the one in force where that leaves the time. A renewed one lies
// somewhat further than it need, so that few reads and writes set one.
func extend(by time.Time, patience time.Duration) (_ time.Time, renewed bool) {
	now := time.Now()
	if by.Sub(now) >= patience {
		return by, false
	}
	return now.Add(patience + min(patience/4, time.Second)), true
}

// mute is called when an answer was, or was in part, sent past the server.
func (c *clientConn) mute() { c.muted = true }

// unmute follows the server's own states: it becomes idle when it has written
// what it had to say about the last request.
func unmute(c net.Conn, s fasthttp.ConnState) {
	if s == fasthttp.StateIdle {
		if cc, ok := c.(*clientConn); ok {
			cc.muted = false
		}
	}
}

// reset makes the connection end in a reset instead of an orderly end, for
// clients that could otherwise not tell a cut answer from a whole one.
func (c *clientConn) reset() {
	nc := c.Conn
	if t, ok := nc.(interface{ NetConn() net.Conn }); ok {
		nc = t.NetConn()
	}
	if tc, ok := nc.(*net.TCPConn); ok {
		_ = tc.SetLinger(0)
	}
}

// clientListener wraps what it accepts.
type clientListener struct {
	net.Listener
	tls      *tls.Config // nil: none
	patience time.Duration
}

func (l clientListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	if l.tls != nil {
		c = tls.Server(c, l.tls) // shakes hands with the first read, under its deadline
	}
	return &clientConn{Conn: c, sock: socketOf(c), patience: l.patience}, nil
}
