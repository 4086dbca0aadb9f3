package wire

import "bytes"

// Check returns the reason why a request cannot be forwarded, according to its head, or nil.
func (x *Exchange) Check(up *Upstream) error {
	if up == nil {
		return errUnknownUpstream
	}
	h := &x.ctx.Request.Header
	switch {
	case !bytes.HasPrefix(h.Protocol(), []byte("HTTP/1.")): // "PRI * HTTP/2.0"
		return errHTTP2
	case x.head.coding && h.ContentLength() != -1: // Transfer-Encoding other than chunked
		return errCoding
	case !isPath(OriginForm(h.RequestURI())): // OPTIONS * addresses the proxy itself
		return errTarget
	case x.IsUpgrade() && !x.head.webSocket:
		// HTTP/2 would carry requests past the proxy, with fields addressed to the
		// proxy.
		return errUpgrade
	}
	return nil
}

func isPath(target []byte) bool { return len(target) == 0 || target[0] == '/' || target[0] == '?' }

// IsUpgrade reports whether the client requests another protocol, such as
// WebSocket.
func (x *Exchange) IsUpgrade() bool {
	return x.head.upgrade && tokenIn(x.head.connection, "upgrade")
}

// headFacts holds the fields of a head that decide how to forward it.
type headFacts struct {
	connection []byte // the list in Connection
	length     bool   // has Content-Length
	coding     bool   // has Transfer-Encoding
	upgrade    bool   // has Upgrade
	webSocket  bool   // Upgrade lists only websocket
}

// suspect reports whether the head has two lengths of the body: a server in front of the
// proxy may disagree on the start of the next request (RFC 9112 section 6.1).
func (f *headFacts) suspect() bool { return f.length && f.coding }

func readFields(raw []byte) (f headFacts) {
	other := false
	for line := range lines(raw) {
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
		}
	}
	f.webSocket = f.upgrade && !other
	return f
}
