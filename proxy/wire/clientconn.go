package wire

import (
	"crypto/tls"
	"errors"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
)

// clientConn is a client's connection under fasthttp's server. Answers bypass the
// server and are written directly to the connection, because fasthttp can neither relay
// bytes unchanged nor abort a truncated stream. Afterwards the server's own writes are
// discarded.
type clientConn struct {
	net.Conn
	sock  socket
	muted bool // an answer, or part of one, bypassed the server; owned by the serving goroutine
	tls   bool // the client must use TLS

	timeouts Timeouts
	readBy   time.Time   // current read deadline
	writeBy  time.Time   // current write deadline, see renew
	stage    stage       // how far the server has read the request
	stopped  atomic.Bool // the rest of the body is not wanted

	all       *ClientConns // the count that includes this connection, or nil
	from      netip.Prefix // the client's network
	idleSince atomic.Int64 // in Unix nanoseconds; 0 during a request
}

// newClientConn wraps a client's connection. ClientConns.admit counts it.
func newClientConn(raw net.Conn, t Timeouts) *clientConn {
	c := &clientConn{Conn: raw, sock: socketOf(raw), timeouts: t}
	c.idleSince.Store(time.Now().UnixNano())
	return c
}

// stage is how far the server has read a request.
type stage uint8

const (
	stageIdle  stage = iota // nothing received, or everything read
	stageBegan              // first byte received
	stageHead               // in the head
	stageBody               // in the body
)

// SetReadDeadline is called by the server, which sets one deadline for a head after the
// request's first byte, and one for the entire body. Read replaces the latter by a
// deadline per read: a client may be slow, but not silent.
func (c *clientConn) SetReadDeadline(t time.Time) error {
	if c.stage == stageBegan || c.stage == stageHead {
		c.stage++
	}
	c.readBy = t
	return c.Conn.SetReadDeadline(t)
}

// SetDeadline is called by the server, which removes its deadlines before it gives the
// connection away.
func (c *clientConn) SetDeadline(t time.Time) error {
	c.readBy, c.writeBy = t, t
	return c.Conn.SetDeadline(t)
}

// Close closes the connection and removes it from the count.
func (c *clientConn) Close() error {
	err := c.Conn.Close()
	if c.all != nil {
		c.all.leave(c)
	}
	return err
}

// cut closes the connection immediately, without TLS's closing alert, which could
// block.
func (c *clientConn) cut() {
	_ = rawConn(c.Conn).Close()
	c.all.leave(c)
}

// stopBody interrupts a read in another goroutine, and all later ones.
func (c *clientConn) stopBody() {
	c.stopped.Store(true)
	_ = c.Conn.SetReadDeadline(time.Unix(1, 0))
}

// Read is called by the server.
func (c *clientConn) Read(p []byte) (int, error) {
	if c.stage == stageBody {
		return c.readBody(p)
	}
	n, err := c.Conn.Read(p)
	if err != nil && c.tls {
		c.answerPlainHTTP(err)
	}
	return n, err
}

// readBody reads a piece of a body.
func (c *clientConn) readBody(p []byte) (int, error) {
	if err := renew(&c.readBy, c.timeouts.Body, c.Conn.SetReadDeadline); err != nil {
		return 0, err
	}
	// Check after setting the deadline: stopBody sets the flag before its own
	// deadline, so one of the two takes effect.
	if c.stopped.Load() {
		return 0, os.ErrDeadlineExceeded
	}
	return c.Conn.Read(p)
}

// answerPlainHTTP answers a client that sent HTTP without TLS, according to err.
func (c *clientConn) answerPlainHTTP(err error) {
	var record tls.RecordHeaderError // has a Conn only if nothing was written yet
	if !errors.As(err, &record) || record.Conn == nil || !slices.Contains(beginnings, string(record.RecordHeader[:])) {
		return
	}
	c.muted = true // the server would write TLS
	answerLast(record.Conn, answerOf("400 Bad Request", "graphiti-proxy: this address speaks TLS; begin the base URL with https://"))
}

// beginnings lists the first five bytes of requests without TLS.
var beginnings = []string{"GET /", "HEAD ", "POST ", "PUT /", "PATCH", "DELET", "OPTIO", "CONNE"}

// Write is called by the server.
func (c *clientConn) Write(p []byte) (int, error) {
	if c.muted {
		return len(p), nil
	}
	if err := c.send(p); err != nil {
		return 0, err
	}
	return len(p), nil
}

// send writes part of an answer, bypassing the server.
func (c *clientConn) send(p []byte) error {
	if err := renew(&c.writeBy, c.timeouts.Idle, c.SetWriteDeadline); err != nil {
		return err
	}
	_, err := c.Conn.Write(p)
	return err
}

// renew sets a deadline for a wait of at most patience from now, unless the current
// deadline fits. A new deadline has some slack, so that few reads and writes need to set
// one.
func renew(by *time.Time, patience time.Duration, set func(time.Time) error) error {
	now := time.Now()
	slack := min(patience/4, time.Second)
	if left := by.Sub(now); patience <= left && left <= patience+slack {
		return nil
	}
	*by = now.Add(patience + slack)
	return set(*by)
}

// Follow handles the server's state changes of a connection: active at the first byte
// of a request, idle after the server has written its answer.
func Follow(c net.Conn, s fasthttp.ConnState) {
	cc, ok := c.(*clientConn)
	if !ok {
		return
	}
	switch s {
	case fasthttp.StateActive:
		cc.idleSince.Store(0)
		cc.stage = stageBegan
	case fasthttp.StateIdle:
		cc.idleSince.Store(time.Now().UnixNano())
		cc.muted, cc.stage = false, stageIdle
	}
}

// reset makes Close send a TCP reset, for clients that could not otherwise distinguish a
// truncated answer from a complete one.
func (c *clientConn) reset() {
	if tc, ok := rawConn(c.Conn).(*net.TCPConn); ok {
		_ = tc.SetLinger(0)
	}
}
