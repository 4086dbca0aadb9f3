package wire

import "bytes"

// Check returns why a request cannot be forwarded, judged by its head; nil when it can.
func (x *Exchange) Check(up *Upstream) error {
	if up == nil {
		return errUnknownUpstream
	}
	h := &x.ctx.Request.Header
	switch {
	case !bytes.HasPrefix(h.Protocol(), []byte("HTTP/1.")): // "PRI * HTTP/2.0"
		return errHTTP2
	case x.head.coding && h.ContentLength() != -1: // which is chunked
		return errCoding
	case !isPath(OriginForm(h.RequestURI())): // OPTIONS * asks us, and no upstream
		return errTarget
	case x.IsUpgrade() && !x.head.webSocket:
		// Over HTTP/2 requests would pass that nobody reads, with fields addressed to
		// us.
		return errUpgrade
	}
	return x.checkHops(up, x.head.hops)
}

func isPath(target []byte) bool { return len(target) == 0 || target[0] == '/' || target[0] == '?' }

// IsUpgrade reports whether the client asks for another protocol, such as
// WebSocket.
func (x *Exchange) IsUpgrade() bool {
	return x.head.upgrade && tokenIn(x.head.connection, "upgrade")
}

// headFacts are the fields of a head that decide how it may be forwarded.
type headFacts struct {
	connection []byte   // the list in Connection
	length     bool     // there is a Content-Length
	coding     bool     // there is a Transfer-Encoding
	upgrade    bool     // there is an Upgrade
	webSocket  bool     // which asks for that, and for nothing else
	hops       [][]byte // the values of hopField
}

// suspect reports whether the head says two things about the body's length: a server in
// front of us may see the next request begin elsewhere (RFC 9112 section 6.1).
func (f *headFacts) suspect() bool { return f.length && f.coding }

func readFields(raw []byte) (f headFacts) {
	other := false
	for line := range lines(raw) {
		switch line[0] | 0x20 {
		case 'c', 't', 'u': // the rest need not be looked at
		default:
			continue
		}
		name, value, _ := bytes.Cut(line, []byte{':'})
		switch {
		case FieldIs(name, "connection"):
			f.connection = joinLists(f.connection, trimBlank(value))
		case FieldIs(name, "content-length"):
			f.length = true
		case FieldIs(name, "transfer-encoding"):
			f.coding = true
		case FieldIs(name, "upgrade"):
			for t := range tokens(value) {
				f.upgrade = true
				other = other || !FieldIs(t, "websocket")
			}
		case FieldIs(name, hopFieldLower):
			f.hops = append(f.hops, value)
		}
	}
	f.webSocket = f.upgrade && !other
	return f
}
