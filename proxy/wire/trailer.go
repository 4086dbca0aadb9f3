package wire

import (
	"bytes"
	"slices"

	"github.com/valyala/fasthttp"
)

// headFields counts the fields of a request's head before its body is read: fasthttp
// appends those of a trailer, announced or not.
func headFields(h *fasthttp.RequestHeader) int {
	n := h.Len()
	if h.ConnectionClose() {
		n-- // always the last
	}
	return n
}

// trailer yields the fields that came behind the body.
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

// appendTrailers writes the fields that came behind the body, without those that would
// be dropped from a head.
func (x *Exchange) appendTrailers(dst []byte) []byte {
	for name, value := range x.trailer() {
		if !hopByHop(name) && !namedBy(x.head.connection, name) && !x.w.o.Own(name) {
			dst = append(append(append(append(dst, name...), ": "...), value...), "\r\n"...)
		}
	}
	return dst
}

// dropTrailers takes the trailer out of the head again. Gateways say in fields who sent
// a request, and remove such fields of clients from heads, not from trailers.
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
