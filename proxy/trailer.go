package proxy

import (
	"github.com/valyala/fasthttp"
)

// headFields counts the fields of a request's head, before its body is read:
// fasthttp puts those of a trailer, announced or not, behind them.
func headFields(h *fasthttp.RequestHeader) int {
	n := h.Len()
	if h.ConnectionClose() {
		n-- // always the last
	}
	return n
}

// appendTrailers writes the fields that came behind the body, less those that
// would be taken out of a head.
func (c *call) appendTrailers(dst []byte) []byte {
	h := &c.ctx.Request.Header
	i, end := 0, headFields(h)
	for name, value := range h.All() {
		if i++; i > c.fields && i <= end && !hopByHop(name) && !namedBy(c.connection, name) && !ours(name) {
			dst = append(append(append(append(dst, name...), ": "...), value...), "\r\n"...)
		}
	}
	return dst
}
