package wire

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Rewrite says which fields of a head are changed when it is passed on, beside those
// that belong to a connection.
type Rewrite struct {
	Without []string // fields that are left out, in small letters
	Add     []byte   // whole lines
	Extend  Field    // its value is appended to the field's list, or becomes the field
}

// Field is a field of a head. An empty name means none.
type Field struct{ Name, Value string }

// Outgoing is what is sent upstream for a request.
type Outgoing struct {
	Head Rewrite

	// Pieces make up the body that is sent, when it was read whole; nil: as it was read.
	Pieces [][]byte
}

// length returns the length of a body that was read whole.
func (o *Outgoing) length() (n int) {
	for _, p := range o.Pieces {
		n += len(p)
	}
	return n
}

// buildHead writes the request's head into x.out: the client's lines without those that
// belong to its connection or to us.
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
	if x.marks(up) {
		out = append(append(append(out, hopField+": "...), x.w.hop...), "\r\n"...)
	}
	if x.IsUpgrade() {
		out = appendUpgrade(out, h.RawHeaders())
	}
	x.out = append(x.appendLength(out, o), "\r\n"...)
	return nil
}

// appendFields writes the client's fields that are passed on.
func (x *Exchange) appendFields(out []byte, r *Rewrite) (_ []byte, extended bool, err error) {
	for line := range lines(x.ctx.Request.Header.RawHeaders()) {
		name, _, ok := bytes.Cut(line, []byte{':'})
		if !ok || bytes.IndexByte(name, ' ') >= 0 || bytes.IndexByte(name, '\t') >= 0 { // such a line ends the head for some servers
			return out, false, errField
		}
		switch {
		case FieldIs(name, "host"), FieldIs(name, "content-length"), FieldIs(name, "transfer-encoding"), FieldIs(name, "expect"):
		case hopByHop(name), namedBy(x.head.connection, name), x.w.o.Own(name), r.drops(name):
		case r.Extend.Name != "" && strings.EqualFold(string(name), r.Extend.Name):
			out = append(append(append(append(out, line...), ','), r.Extend.Value...), "\r\n"...)
			extended = true
		default:
			out = append(append(out, line...), "\r\n"...)
		}
	}
	return append(out, r.Add...), extended, nil
}

func (r *Rewrite) drops(name []byte) bool {
	return len(r.Without) > 0 && slices.ContainsFunc(r.Without, func(lower string) bool { return FieldIs(name, lower) })
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

// appendLength adds the field that says how long the body is. A body that came in
// chunks and was read whole gets a length, unless it has a trailer.
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

// inlineBody is the size up to which a body is copied behind its head, to be sent in
// one write; larger ones are sent from where they are.
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
	var end []byte // what follows the body, when that is one chunk
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

// write writes x.out, which holds the head, the body, and what stands behind.
func (x *Exchange) write(up *upstreamConn, o *Outgoing, end []byte) error {
	if o.length() <= inlineBody {
		for _, p := range o.Pieces {
			x.out = append(x.out, p...)
		}
		x.out = append(x.out, end...)
		_, err := up.Write(x.out)
		return err
	}
	x.list = append(append(append(x.list[:0], x.out), o.Pieces...), end)
	x.bufs = x.list
	_, err := x.bufs.WriteTo(up.Conn)
	clear(x.list)
	return err
}
