package proxy

import (
	"bytes"

	"github.com/valyala/fasthttp"
)

var (
	errHTTP2   = &clientError{fasthttp.StatusNotImplemented, "graphiti-proxy: only HTTP/1.1 is spoken here; turn HTTP/2 without TLS off in the client"}
	errUpgrade = &clientError{fasthttp.StatusNotImplemented, "graphiti-proxy: an upgrade to another protocol than websocket is not passed on; turn it off in the client"}
	errCoding  = &clientError{fasthttp.StatusBadRequest, "graphiti-proxy: the request's Transfer-Encoding is not chunked"}
)

// refusal is why a request is not forwarded, whatever its body says; nil: it is.
func (s *Server) refusal(c *call) error {
	h := &c.ctx.Request.Header
	head := readFields(h.RawHeaders())
	// Behind a head that says two things about its length, another in front of
	// us may see the next request elsewhere (RFC 9112 section 6.1).
	c.suspect = head.coding && head.length
	switch {
	case !bytes.HasPrefix(h.Protocol(), []byte("HTTP/1.")): // "PRI * HTTP/2.0"
		return errHTTP2
	case head.coding && h.ContentLength() != -1: // which is chunked
		return errCoding
	case c.isUpgrade() && !head.webSocket:
		// In HTTP/2 there would be requests that nobody reads, with fields
		// addressed to us.
		return errUpgrade
	case s.refuses(c): // upgrade.go: a WebSocket in which memory could not be
		return errUseHTTP
	}
	return s.loopIn(c, head.hops)
}

// headFacts is what the fields of a head say about how it may be forwarded.
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
		case fieldIs(name, "content-length"):
			f.length = true
		case fieldIs(name, "transfer-encoding"):
			f.coding = true
		case fieldIs(name, "upgrade"):
			for t := range tokens(value) {
				f.webSocket = true
				other = other || !fieldIs(t, "websocket")
			}
		case fieldIs(name, hopFieldLower):
			f.hops = append(f.hops, value)
		}
	}
	f.webSocket = f.webSocket && !other
	return f
}
