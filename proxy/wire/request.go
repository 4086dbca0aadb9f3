package wire

import (
	"bytes"

	"github.com/valyala/fasthttp"
)

// Check returns why a request cannot be forwarded, judged by its head; nil when it can.
func (x *Exchange) Check(up *Upstream) error {
	if up == nil {
		return errUnknownUpstream
	}
	h := &x.ctx.Request.Header
	head := readFields(h.RawHeaders())
	// After a head with two statements about the length, a server in front of us may
	// see the next request begin elsewhere (RFC 9112 section 6.1).
	x.suspect = head.coding && head.length
	switch {
	case !bytes.HasPrefix(h.Protocol(), []byte("HTTP/1.")): // "PRI * HTTP/2.0"
		return errHTTP2
	case head.coding && h.ContentLength() != -1: // which is chunked
		return errCoding
	case x.IsUpgrade() && !head.webSocket:
		// Over HTTP/2 requests would pass that nobody reads, with fields addressed to
		// us.
		return errUpgrade
	}
	return x.checkHops(up, head.hops)
}

// IsUpgrade reports whether the client asks for another protocol, such as
// WebSocket.
func (x *Exchange) IsUpgrade() bool {
	return len(x.ctx.Request.Header.Peek(fasthttp.HeaderUpgrade)) > 0 && tokenIn(x.connection, "upgrade")
}

// headFacts are the fields of a head that decide how it may be forwarded.
type headFacts struct {
	length    bool     // there is a Content-Length
	coding    bool     // there is a Transfer-Encoding
	webSocket bool     // Upgrade asks for it, and for nothing else
	hops      [][]byte // the values of hopField
}

func readFields(raw []byte) (f headFacts) {
	other := false
	for len(raw) > 0 {
		var line []byte
		if line, raw = cutLine(raw); len(line) == 0 {
			break
		}
		switch line[0] | 0x20 {
		case 'c', 't', 'u': // the rest need not be looked at
		default:
			continue
		}
		name, value, _ := bytes.Cut(line, []byte{':'})
		switch {
		case FieldIs(name, "content-length"):
			f.length = true
		case FieldIs(name, "transfer-encoding"):
			f.coding = true
		case FieldIs(name, "upgrade"):
			for t := range tokens(value) {
				f.webSocket = true
				other = other || !FieldIs(t, "websocket")
			}
		case FieldIs(name, hopFieldLower):
			f.hops = append(f.hops, value)
		}
	}
	f.webSocket = f.webSocket && !other
	return f
}
