package wire

import (
	"bytes"
	"slices"

	"github.com/valyala/fasthttp"
)

// headFields counts the fields of a request's head before its body is read: afterwards
// fasthttp appends the trailer's fields, announced or not.
func headFields(h *fasthttp.RequestHeader) int {
	n := h.Len()
	if h.ConnectionClose() {
		n-- // always the last
	}
	return n
}

// trailer yields the fields of the trailer.
func (x *Exchange) trailer() func(yield func(name, value []byte) bool) {
	return func(yield func(name, value []byte) bool) {
		h := &x.ctx.Request.Header
		i, end := 0, headFields(h)
		for name, value := range h.All() {
			if i++; i > x.fields && i <= end && !yield(name, value) {
				return
			}
		}
	}
}

// appendTrailers appends the trailer's fields, except fields that a head must not forward.
func (x *Exchange) appendTrailers(dst []byte) []byte {
	for name, value := range x.trailer() {
		if !hopByHop(name) && !namedBy(x.head.connection, name) && !x.w.o.Own(name) {
			dst = append(append(append(append(dst, name...), ": "...), value...), "\r\n"...)
		}
	}
	return dst
}

// dropTrailers removes the trailer's fields from the head. Gateways identify the sender
// in fields, and remove a client's forgeries from heads but not from trailers.
func (x *Exchange) dropTrailers() {
	h := &x.ctx.Request.Header
	var names [][]byte
	for name := range x.trailer() {
		names = append(names, bytes.Clone(name))
	}
	for _, name := range names {
		h.DelBytes(name)
	}
	for name, value := range fieldLines(h.RawHeaders()) {
		if slices.ContainsFunc(names, func(n []byte) bool { return bytes.EqualFold(n, name) }) {
			h.AddBytesKV(name, value)
		}
	}
}
