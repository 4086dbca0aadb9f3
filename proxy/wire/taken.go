package wire

import (
	"net"
	"time"

	"github.com/valyala/fasthttp"
)

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
