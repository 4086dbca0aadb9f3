package wire

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Rewrite lists the changes to a head when it is forwarded, in addition to the removal
// of hop-by-hop fields.
type Rewrite struct {
	Without []string // fields to omit, in lower case
	Add     []byte   // complete lines
	Extend  Field    // its value is appended to the existing field, or becomes a new one
}

// Field is a field of a head. An empty name means no field.
type Field struct{ Name, Value string }

// Outgoing holds the changes to a request before it is sent upstream.
type Outgoing struct {
	Head Rewrite

	// Pieces replace a body that was read completely; nil keeps it unchanged.
	Pieces [][]byte
}

// length returns the length of the pieces.
func (o *Outgoing) length() (n int) {
	for _, p := range o.Pieces {
		n += len(p)
	}
	return n
}

// buildHead writes the request's head into x.out: the client's fields without hop-by-hop
// fields and fields for the proxy.
func (x *Exchange) buildHead(up *Upstream, o *Outgoing) error {
	h := &x.ctx.Request.Header
	out := append(append(x.out[:0], h.Method()...), ' ')
	switch target := OriginForm(h.RequestURI()); {
	case len(target) == 0 || target[0] == '?':
		out = append(append(append(out, up.prefix...), '/'), target...)
	default:
		out = append(append(out, up.prefix...), target...)
	}
	out = append(append(out, " HTTP/1.1\r\nHost: "...), up.Host...)
	out = append(out, "\r\n"...)
	out, extended, err := x.appendFields(out, &o.Head)
	if err != nil {
		return err
	}
	if e := o.Head.Extend; e.Name != "" && !extended {
		out = append(append(append(append(out, e.Name...), ": "...), e.Value...), "\r\n"...)
	}
	if x.IsUpgrade() {
		out = appendUpgrade(out, h.RawHeaders())
	}
	x.out = append(x.appendLength(out, o), "\r\n"...)
	return nil
}

// appendFields appends the client's fields to forward.
func (x *Exchange) appendFields(out []byte, r *Rewrite) (_ []byte, extended bool, err error) {
	for line := range lines(x.ctx.Request.Header.RawHeaders()) {
		name, _, ok := bytes.Cut(line, []byte{':'})
		if !ok || bytes.IndexByte(name, ' ') >= 0 || bytes.IndexByte(name, '\t') >= 0 { // some servers take such a line as the end of the head
			return out, false, errField
		}
		switch {
		case FieldIs(name, "host"), FieldIs(name, "content-length"), FieldIs(name, "transfer-encoding"), FieldIs(name, "expect"):
		case hopByHop(name), namedBy(x.head.connection, name), x.w.o.Own(name), FieldIn(name, r.Without):
		case r.Extend.Name != "" && strings.EqualFold(string(name), r.Extend.Name):
			out = append(append(append(append(out, line...), ','), r.Extend.Value...), "\r\n"...)
			extended = true
		default:
			out = append(append(out, line...), "\r\n"...)
		}
	}
	return append(out, r.Add...), extended, nil
}

// OriginForm returns a target without scheme and host, which clients send to forward
// proxies. Its path may be empty.
func OriginForm(target []byte) []byte {
	i := bytes.Index(target, []byte("://"))
	if i < 0 || target[0] == '/' {
		return target
	}
	target = target[i+len("://"):]
	if i = bytes.IndexAny(target, "/?"); i < 0 {
		return nil
	}
	return target[i:]
}

// appendLength appends the framing field. A chunked body that was read completely gets a
// length, unless it has a trailer.
func (x *Exchange) appendLength(out []byte, o *Outgoing) []byte {
	length := x.ctx.Request.Header.ContentLength()
	switch {
	case x.rest != nil && length < 0, len(x.trailers) > 0:
		return append(out, "Transfer-Encoding: chunked\r\n"...)
	case x.rest == nil && (length != -2 || len(x.body) > 0):
		length = o.length()
	case x.rest == nil:
		return out
	}
	if length == 0 && (x.ctx.IsGet() || x.ctx.IsHead()) {
		return out
	}
	out = append(out, "Content-Length: "...)
	out = strconv.AppendInt(out, int64(length), 10)
	return append(out, "\r\n"...)
}

// inlineBody is the largest body that is copied after its head and sent in one write. The pieces
// of larger ones are sent without a copy.
const inlineBody = 16 << 10

// send writes head and body.
func (x *Exchange) send(up *upstreamConn, o *Outgoing) error {
	if x.rest != nil {
		x.pump = startPump(x, up)
		return nil
	}
	if err := renew(&up.writeBy, x.timeouts.Idle, up.SetWriteDeadline); err != nil {
		return fmt.Errorf("send request: %w", err)
	}
	head := len(x.out)
	var end []byte // bytes after the body, if it is one chunk
	if len(x.trailers) > 0 {
		if n := o.length(); n > 0 {
			x.out = append(strconv.AppendInt(x.out, int64(n), 16), "\r\n"...)
			end = append(end, "\r\n"...)
		}
		end = append(append(append(end, "0\r\n"...), x.trailers...), "\r\n"...)
	}
	err := x.write(up, o, end)
	x.out = x.out[:head]
	if err != nil {
		return fmt.Errorf("send request: %w", err)
	}
	return nil
}

// write writes the head in x.out, the body and end.
func (x *Exchange) write(up *upstreamConn, o *Outgoing, end []byte) error {
	if o.length() <= inlineBody {
		for _, p := range o.Pieces {
			x.out = append(x.out, p...)
		}
		x.out = append(x.out, end...)
		_, err := up.Write(x.out)
		return err
	}
	for _, p := range slices.Concat([][]byte{x.out}, o.Pieces, [][]byte{end}) {
		if _, err := up.Write(p); err != nil {
			return err
		}
	}
	return nil
}
