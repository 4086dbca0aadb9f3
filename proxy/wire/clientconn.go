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

// ClientConn is a client's connection under fasthttp's server. Answers are
// written past the server, straight to the connection, because fasthttp can
// neither relay bytes as they are nor end a stream that was cut off; what the
// server itself would then answer is swallowed.
type ClientConn struct {
	net.Conn
	Sock  Socket
	muted bool // owned by the goroutine that serves the connection
	tls   bool // the client is to speak TLS

	timeouts ClientTimeouts
	writeBy  time.Time   // the deadline in force, renewed by Extend
	stage    stage       // of the request that the server reads
	stopped  atomic.Bool // the body's rest is not wanted any more

	taken  func()       // called when the server has let go of it; nil: it is the server's
	holds  atomic.Int32 // how many of the server's goroutines have not let go of it
	ahead  []byte       // what the server had read of the next request
	unread bool         // the server shall read nothing but what it has
	rested bool         // its next request is waited for as on a kept connection

	all       *ClientConns // where it counts; nil: nowhere
	from      netip.Prefix // whose it is
	idleSince atomic.Int64 // in Unix nanoseconds; 0: a request is under way
}

// ClientTimeouts bound the silence of a client.
type ClientTimeouts struct {
	Write time.Duration // longest wait for one write
	Body  time.Duration // longest wait for one read of a body
	Next  time.Duration // longest wait for the next request
}

// NewClientConn makes a connection one of a client's, which counts nowhere.
func NewClientConn(raw net.Conn, t ClientTimeouts) *ClientConn {
	c := &ClientConn{Conn: raw, Sock: socketOf(raw), timeouts: t}
	c.idleSince.Store(time.Now().UnixNano())
	return c
}

// stage is how far the server is with reading a request.
type stage uint8

const (
	stageIdle  stage = iota // nothing is there, or all was read
	stageBegan              // the first byte is there
	stageHead               // in the head
	stageBody               // in the body
)

// Stopped reports whether the rest of the body is not wanted any more.
func (c *ClientConn) Stopped() bool { return c.stopped.Load() }

// SetReadDeadline is called by the server, which sets one deadline for a head
// when the request's first byte is there, and one for the body behind it. A
// body has another for each read instead, so that a slow client may take its
// time but a silent one may not.
func (c *ClientConn) SetReadDeadline(t time.Time) error {
	if c.stage == stageBegan || c.stage == stageHead {
		c.stage++
	}
	if c.rested {
		c.rested, t = false, time.Now().Add(c.timeouts.Next)
	}
	return c.Conn.SetReadDeadline(t)
}

// EndBody says that nothing more of the body is read.
func (c *ClientConn) EndBody() { c.stage = stageIdle }

// Close closes the connection, which does not count any more. The server's own
// call lets go of one that was taken.
func (c *ClientConn) Close() error {
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
func (c *ClientConn) cut() {
	_ = rawConn(c.Conn).Close()
	c.all.leave(c)
}

// StopBody ends a read that another goroutine waits in, and all later ones.
func (c *ClientConn) StopBody() {
	c.stopped.Store(true)
	_ = c.Conn.SetReadDeadline(time.Unix(1, 0))
}

// Read reads for the server.
func (c *ClientConn) Read(p []byte) (int, error) {
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
		// After the deadline was set: StopBody sets its own after the flag, so
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

// answerPlainHTTP tells a client that speaks HTTP without TLS what is wrong,
// where err says that it does.
func (c *ClientConn) answerPlainHTTP(err error) {
	var record tls.RecordHeaderError // holds a Conn where nothing was written yet
	if !errors.As(err, &record) || record.Conn == nil || !slices.Contains(beginnings, string(record.RecordHeader[:])) {
		return
	}
	c.Mute() // what the server has to say would be TLS
	_ = record.Conn.SetDeadline(time.Now().Add(plainTime))
	if _, err := io.WriteString(record.Conn, plainAnswer); err != nil {
		return
	}
	// A connection that is closed with unread bytes in it takes the answer along.
	if half, ok := record.Conn.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
		_, _ = io.CopyN(io.Discard, record.Conn, plainBytes)
	}
}

// beginnings are the first five bytes of requests without TLS.
var beginnings = []string{"GET /", "HEAD ", "POST ", "PUT /", "PATCH", "DELET", "OPTIO", "CONNE"}

// plainAnswer is what such a client gets; it has plainTime for it, and
// plainBytes of its request are read.
const (
	plainAnswer = "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n" +
		"graphiti-proxy: this address speaks TLS; begin the base URL with https://\n"
	plainTime  = time.Second
	plainBytes = 1 << 20
)

// Write writes for the server.
func (c *ClientConn) Write(p []byte) (int, error) {
	if c.muted {
		return len(p), nil
	}
	if err := c.Send(p); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Send writes a piece of an answer past the server.
func (c *ClientConn) Send(p []byte) error {
	if by, renewed := Extend(c.writeBy, c.timeouts.Write); renewed {
		c.writeBy = by
		if err := c.SetWriteDeadline(by); err != nil {
			return err
		}
	}
	_, err := c.Conn.Write(p)
	return err
}

// Extend returns the deadline of a wait that begins now and may take as long
// as patience: the one in force where that leaves the time. A renewed one lies
// somewhat further than it need, so that few reads and writes set one.
func Extend(by time.Time, patience time.Duration) (_ time.Time, renewed bool) {
	now := time.Now()
	if by.Sub(now) >= patience {
		return by, false
	}
	return now.Add(patience + min(patience/4, time.Second)), true
}

// Mute is called when an answer was, or was in part, sent past the server.
func (c *ClientConn) Mute() { c.muted = true }

// Follow follows the server's own states: it becomes active with the first byte
// of a request, and idle when it has written what it had to say about it.
func Follow(c net.Conn, s fasthttp.ConnState) {
	cc, ok := c.(*ClientConn)
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

func (c *ClientConn) idle() {
	c.idleSince.Store(time.Now().UnixNano())
	c.muted, c.stage = false, stageIdle
}

// Reset makes the connection end in a reset instead of an orderly end, for
// clients that could otherwise not tell a cut answer from a whole one.
func (c *ClientConn) Reset() {
	if tc, ok := rawConn(c.Conn).(*net.TCPConn); ok {
		_ = tc.SetLinger(0)
	}
}
