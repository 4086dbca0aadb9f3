package proxy

import (
	"bytes"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"github.com/valyala/fasthttp"
)

// tunnelLinger is how long one direction of a tunnel may go on after the other
// has ended.
const tunnelLinger = time.Second

// isUpgrade reports whether the client asks for another protocol, such as
// WebSocket.
func (c *call) isUpgrade() bool {
	return len(c.ctx.Request.Header.Peek(fasthttp.HeaderUpgrade)) > 0 && tokenIn(c.connection, "upgrade")
}

// errUseHTTP makes clients that prefer WebSocket for the Responses API, such as
// Codex, go on with POST at once.
var errUseHTTP = &clientError{fasthttp.StatusUpgradeRequired, "graphiti-proxy: the Responses API over WebSocket has no memory here; use POST, or set websocket to intercept"}

// errBodyCut says that an upstream wants to speak another protocol and has not
// taken the request.
var errBodyCut = errors.New("the request's body did not reach its end")

// WebSocket says what is done about the Responses API over WebSocket. Other
// WebSockets, such as Realtime's, are tunnelled.
type WebSocket int

// What can be done.
const (
	WebSocketRefuse    WebSocket = iota // clients go on with POST
	WebSocketTunnel                     // without memory
	WebSocketIntercept                  // with memory
)

// refuses reports whether a request is for a WebSocket that is refused.
func (s *Server) refuses(c *call) bool {
	if s.way().webSocket == WebSocketTunnel || !c.isUpgrade() {
		return false
	}
	path, _, _ := bytes.Cut(c.ctx.Request.Header.RequestURI(), []byte{'?'})
	if !bytes.HasSuffix(path, []byte("/responses")) {
		return false
	}
	c.intercepted = s.way().webSocket == WebSocketIntercept && c.memory.Planner != nil
	return s.way().webSocket == WebSocketRefuse
}

// tunnel passes the upstream's 101 on and then bytes both ways, untouched,
// until one side ends. It takes the connection out of the server's hands.
func (s *Server) tunnel(c *call, up *upstreamConn, head answerHead, n int) {
	err := errBadHead
	if c.isUpgrade() {
		err = c.endRequest()
	}
	if err != nil {
		up.Close()
		c.detach()
		s.writeError(c, c.pump.fault(c, err))
		return
	}
	out := c.answerHead(nil, &head, false)
	out = append(out[:len(out)-2], "Connection: Upgrade\r\n"...)
	for name, value := range fieldLines(head.fields) {
		if fieldIs(name, "upgrade") {
			out = append(append(append(out, "Upgrade: "...), value...), "\r\n"...)
		}
	}
	out = append(append(out, "\r\n"...), c.in[head.size:n]...)

	if !c.detach() || c.client.send(out) != nil {
		up.Close()
		c.client.mute()
		c.ctx.SetConnectionClose()
		return
	}
	_ = up.SetDeadline(time.Time{})
	client, x := c.client, s.newIntercept(c, &head)
	c.ctx.HijackSetNoResponse(true)
	c.ctx.Hijack(func(conn net.Conn) {
		s.tunnels.add(up)
		defer s.tunnels.remove(up)
		if x == nil {
			s.pipe(up, client, func() { _, _ = io.Copy(client, up) }, func() { _, _ = io.Copy(up, conn) })
			return
		}
		s.pipe(up, client, func() { _ = x.fromUpstream(client, up) }, func() { _ = x.fromClient(up, conn) })
	})
}

// endRequest waits until the upstream has the request's body. An upstream may
// agree to another protocol before, but both sides speak it behind the body,
// and until then the connections are the pump's.
func (c *call) endRequest() error {
	if c.pump == nil {
		return nil
	}
	if <-c.pump.done; !c.pump.join(c) {
		return errBodyCut
	}
	return nil
}

// pipe copies both ways until both have ended, the second one within
// tunnelLinger. A bug in one ends both.
func (s *Server) pipe(up *upstreamConn, client *clientConn, down, upwards func()) {
	end := func() {
		up.Close()
		_ = client.Close()
	}
	var wg sync.WaitGroup
	wg.Add(1)
	// Ends with the upstream's side, which the client's end bounds below.
	go func() {
		defer wg.Done()
		defer s.caught("tunnel to a client", end)
		down()
		closeWrite(client.Conn)
		_ = client.SetReadDeadline(time.Now().Add(tunnelLinger))
	}()
	func() {
		defer s.caught("tunnel to an upstream", end)
		upwards()
	}()
	closeWrite(up.Conn)
	_ = up.SetReadDeadline(time.Now().Add(tunnelLinger))
	wg.Wait()
	up.Close()
}

// closeWrite tells the peer that nothing more will come.
func closeWrite(c net.Conn) {
	if h, ok := c.(interface{ CloseWrite() error }); ok {
		_ = h.CloseWrite()
	}
}

// tunnels are the connections that Shutdown closes, because no request of the
// server's stands behind them.
type tunnels struct {
	mu   sync.Mutex // guards what follows
	open map[*upstreamConn]struct{}
}

func (t *tunnels) add(c *upstreamConn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open == nil {
		t.open = make(map[*upstreamConn]struct{})
	}
	t.open[c] = struct{}{}
}

func (t *tunnels) remove(c *upstreamConn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.open, c)
}

// closeAll ends the tunnels: the clients' sides end within tunnelLinger.
func (t *tunnels) closeAll() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for c := range t.open {
		_ = rawConn(c.Conn).Close()
	}
}
