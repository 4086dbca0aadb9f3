package wire

import (
	"net"
	"time"

	"github.com/valyala/fasthttp"
)

// Take takes the connection out of the server's hands, when the handler that
// calls it has returned: the server has nothing more to say, and frees what it
// holds of the request. then is called when it has let go.
func (c *ClientConn) Take(ctx *fasthttp.RequestCtx, then func()) {
	c.taken = then
	c.holds.Store(2) // the goroutine that serves, of which Follow hears, and the one that it starts, which calls Close
	ctx.HijackSetNoResponse(true)
	ctx.Hijack(c.keepAhead)
}

// keepAhead keeps what the server has read of the next request.
func (c *ClientConn) keepAhead(server net.Conn) {
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

// letGo notes that one of the server's goroutines has let go.
func (c *ClientConn) letGo() {
	then := c.taken
	if c.holds.Add(-1) > 0 {
		return
	}
	c.taken = nil
	then()
}

// Rest is called when the answer has ended that the connection was taken for: a
// server may serve it again.
func (c *ClientConn) Rest() {
	c.idle()
	c.rested = true
}

// Patience is the longest wait for one write.
func (c *ClientConn) Patience() time.Duration { return c.timeouts.Write }
