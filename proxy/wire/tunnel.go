package wire

import (
	"cmp"
	"context"
	"io"
	"net"
	"sync"
	"time"

	"github.com/valyala/fasthttp"
)

// Linger limits how long one direction of a tunnel continues after the other has
// ended.
const Linger = time.Second

// SwitchesProtocols reports whether the upstream switches to another protocol.
func (a *Answer) SwitchesProtocols() bool { return a.Status == fasthttp.StatusSwitchingProtocols }

// Tunnel relays the upstream's 101 and then bytes both ways, until one side ends. It takes
// the connection from the server. messages, if not nil, reads the messages and may
// replace them. An error means that the client has no answer yet.
func (x *Exchange) Tunnel(a Answer, messages *WebSocket) error {
	err := errBadHead
	if x.IsUpgrade() {
		err = x.endRequest()
	}
	if err != nil {
		a.up.Close()
		x.detach()
		return x.fault(err)
	}
	out := x.answerHead(nil, &a.AnswerHead, Rewrite{}, false)
	out = appendUpgrade(out[:len(out)-2], a.Fields)
	out = append(append(out, "\r\n"...), x.in[a.size:a.n]...)
	if !x.detach() || x.client.send(out) != nil {
		a.up.Close()
		x.Unanswered()
		return nil //nolint:nilerr // the client disconnected
	}
	_ = a.up.SetDeadline(time.Time{})
	w, up, client := x.w, a.up, x.client
	x.ctx.HijackSetNoResponse(true)
	x.ctx.Hijack(func(conn net.Conn) {
		// The client's side ends within Linger.
		defer context.AfterFunc(w.base, func() { _ = rawConn(up.Conn).Close() })()
		if messages == nil {
			w.pipe(up, client, func() { _, _ = io.Copy(client, up) }, func() { _, _ = io.Copy(up, conn) })
			return
		}
		messages.warn = sync.OnceFunc(func() {
			w.o.Log.Warn("frames of a WebSocket are in an extension that was not agreed on, such as compression; they pass without memory")
		})
		w.pipe(up, client, func() { _ = messages.FromUpstream(client, up) }, func() { _ = messages.fromClient(up, conn) })
	})
	return nil
}

// appendUpgrade appends the fields that request or accept another protocol, with their
// original names. It reduces Connection to "Upgrade".
func appendUpgrade(out, fields []byte) []byte {
	connection, _ := Line(fields, "connection") // some upstreams omit it
	out = append(append(out, cmp.Or(string(connection), "Connection")...), ": Upgrade\r\n"...)
	for name, value := range fieldLines(fields) {
		if FieldIs(name, "upgrade") {
			out = append(append(append(append(out, name...), ": "...), value...), "\r\n"...)
		}
	}
	return out
}

// endRequest waits until the upstream has received the request's body. An upstream may
// accept another protocol earlier, but both sides use it only after the body, and until
// then the pump owns the connections.
func (x *Exchange) endRequest() error {
	if x.pump == nil {
		return nil
	}
	if <-x.pump.done; !x.pump.join(x) {
		return errBodyCut
	}
	return nil
}

// pipe copies both ways until both have ended, the second one within Linger. A panic in
// one ends both.
func (w *Wire) pipe(up *upstreamConn, client *clientConn, down, upwards func()) {
	end := func() {
		up.Close()
		_ = client.Close()
	}
	var wg sync.WaitGroup
	wg.Add(1)
	// Ends with the upstream's side, which the code below limits.
	go func() {
		defer wg.Done()
		defer CatchPanic(w.o.Log, "tunnel to a client", end)
		down()
		closeWrite(client.Conn)
		_ = client.Conn.SetReadDeadline(time.Now().Add(Linger)) // which may be reading
	}()
	func() {
		defer CatchPanic(w.o.Log, "tunnel to an upstream", end)
		upwards()
	}()
	closeWrite(up.Conn)
	_ = up.SetReadDeadline(time.Now().Add(Linger))
	wg.Wait()
	up.Close()
}

// closeWrite shuts down the sending side, and reports whether that was possible.
func closeWrite(c net.Conn) bool {
	h, ok := c.(interface{ CloseWrite() error })
	return ok && h.CloseWrite() == nil
}
