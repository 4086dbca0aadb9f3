package wire

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
)

// clientConn is a client's connection under fasthttp's server. Answers are
// written past the server, straight to the connection, because fasthttp can
// neither relay bytes unchanged nor end a stream that was cut off. Once that has
// happened, what the server itself writes is dropped.
type clientConn struct {
	net.Conn
	sock  socket
	muted bool // an answer, or a part of one, was sent past the server; owned by the goroutine that serves the connection
	tls   bool // the client has to speak TLS

	timeouts ClientTimeouts
	writeBy  time.Time   // the deadline in force, see renew
	stage    stage       // of the request that the server reads
	stopped  atomic.Bool // the rest of the body is no longer wanted

	taken  func()       // called when the server has released it; nil: the server owns it
	holds  atomic.Int32 // how many of the server's goroutines have not released it
	ahead  []byte       // what the server had read of the next request
	unread bool         // the server reads nothing more from it
	rested bool         // it waits for its next request like a kept connection

	all       *ClientConns // where it counts; nil: nowhere
	from      netip.Prefix // the client's network
	idleSince atomic.Int64 // in Unix nanoseconds; 0: a request is under way
}

// ClientTimeouts bound the silence of a client.
type ClientTimeouts struct {
	Write time.Duration // longest wait for one write
	Body  time.Duration // longest wait for one read of a body
	Next  time.Duration // longest wait for the next request
}

// newClientConn wraps a client's connection, which no ClientConns counts yet.
func newClientConn(raw net.Conn, t ClientTimeouts) *clientConn {
	c := &clientConn{Conn: raw, sock: socketOf(raw), timeouts: t}
	c.idleSince.Store(time.Now().UnixNano())
	return c
}

// stage says how far the server has read a request.
type stage uint8

const (
	stageIdle  stage = iota // nothing has come, or all was read
	stageBegan              // the first byte has come
	stageHead               // in the head
	stageBody               // in the body
)

// SetReadDeadline is called by the server: it sets one deadline for a head when the
// request's first byte has come, and one for the whole body. Read replaces the latter
// by one for each read of the body: a client may be slow, but not silent.
func (c *clientConn) SetReadDeadline(t time.Time) error {
	if c.stage == stageBegan || c.stage == stageHead {
		c.stage++
	}
	if c.rested {
		c.rested, t = false, time.Now().Add(c.timeouts.Next)
	}
	return c.Conn.SetReadDeadline(t)
}

// Close closes the connection and takes it out of the count. When the connection was
// taken from the server, the server's call only releases it.
func (c *clientConn) Close() error {
	if c.taken != nil {
		c.letGo()
		return nil
	}
	err := c.Conn.Close()
	if c.all != nil {
		c.all.leave(c)
	}
	return err
}

// cut closes the connection without a word to the peer, which could make the
// caller wait.
func (c *clientConn) cut() {
	_ = rawConn(c.Conn).Close()
	c.all.leave(c)
}

// stopBody ends a read that another goroutine waits in, and all later ones.
func (c *clientConn) stopBody() {
	c.stopped.Store(true)
	_ = c.Conn.SetReadDeadline(time.Unix(1, 0))
}

// Read reads for the server.
func (c *clientConn) Read(p []byte) (int, error) {
	if c.unread {
		return 0, io.EOF
	}
	if len(c.ahead) > 0 {
		n := copy(p, c.ahead)
		c.ahead = c.ahead[n:]
		return n, nil
	}
	if c.stage == stageBody {
		if err := c.Conn.SetReadDeadline(time.Now().Add(c.timeouts.Body)); err != nil {
			return 0, err
		}
		// After the deadline was set: stopBody sets its own after the flag, so
		// one of the two is seen.
		if c.stopped.Load() {
			return 0, os.ErrDeadlineExceeded
		}
	}
	n, err := c.Conn.Read(p)
	if err != nil && c.tls {
		c.answerPlainHTTP(err)
	}
	return n, err
}

// answerPlainHTTP answers a client that speaks HTTP without TLS, when err shows that.
func (c *clientConn) answerPlainHTTP(err error) {
	var record tls.RecordHeaderError // holds a Conn where nothing was written yet
	if !errors.As(err, &record) || record.Conn == nil || !slices.Contains(beginnings, string(record.RecordHeader[:])) {
		return
	}
	c.muted = true // the server would write TLS
	answerLast(record.Conn, []byte(plainAnswer))
}

// beginnings are the first five bytes of requests without TLS.
var beginnings = []string{"GET /", "HEAD ", "POST ", "PUT /", "PATCH", "DELET", "OPTIO", "CONNE"}

// plainAnswer is what such a client gets.
const plainAnswer = "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n" +
	"graphiti-proxy: this address speaks TLS; begin the base URL with https://\n"

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
	if err := renew(&c.writeBy, c.timeouts.Write, c.SetWriteDeadline); err != nil {
		return err
	}
	_, err := c.Conn.Write(p)
	return err
}

// renew sets a deadline for a wait that begins now and may take as long as patience,
// unless the one in force is right for it. A new one lies somewhat later than it has to,
// so that few reads and writes have to set one.
func renew(by *time.Time, patience time.Duration, set func(time.Time) error) error {
	now := time.Now()
	slack := min(patience/4, time.Second)
	if left := by.Sub(now); patience <= left && left <= patience+slack {
		return nil
	}
	*by = now.Add(patience + slack)
	return set(*by)
}

// Follow notes the server's states of a connection: active with the first byte of
// a request, and idle when the server has written its answer.
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
		cc.idle()
	case fasthttp.StateHijacked, fasthttp.StateClosed: // closed: it broke in between
		if cc.taken != nil {
			cc.letGo()
		}
	}
}

func (c *clientConn) idle() {
	c.idleSince.Store(time.Now().UnixNano())
	c.muted, c.stage = false, stageIdle
}

// reset makes the connection end in a reset instead of an orderly end, for clients
// that could not otherwise tell a cut answer from a whole one.
func (c *clientConn) reset() {
	if tc, ok := rawConn(c.Conn).(*net.TCPConn); ok {
		_ = tc.SetLinger(0)
	}
}

// take takes the connection from the server once the calling handler returns: the
// server writes nothing more, and frees what it holds of the request. then is called
// when the server has released the connection.
func (c *clientConn) take(ctx *fasthttp.RequestCtx, then func()) {
	c.taken = then
	c.holds.Store(2) // the goroutine that serves, which Follow reports, and the one that it starts, which calls Close
	ctx.HijackSetNoResponse(true)
	ctx.Hijack(c.keepAhead)
}

// keepAhead keeps what the server has read of the next request.
func (c *clientConn) keepAhead(server net.Conn) {
	c.unread = true
	var b [256]byte
	for {
		n, err := server.Read(b[:])
		c.ahead = append(c.ahead, b[:n]...)
		if err != nil {
			break
		}
	}
	c.unread = false
	c.writeBy = time.Time{} // the server has taken the deadline away
}

// letGo notes that one of the server's goroutines has released the connection.
func (c *clientConn) letGo() {
	then := c.taken
	if c.holds.Add(-1) > 0 {
		return
	}
	c.taken = nil
	then()
}

// rest notes that the answer has ended for which the connection was taken: a server may
// serve it again.
func (c *clientConn) rest() {
	c.idle()
	c.rested = true
}
