package proxy

import (
	"errors"
	"strings"

	"github.com/graphiti-proxy/graphiti-proxy/capture"
	"github.com/graphiti-proxy/graphiti-proxy/inject"
)

// maxRatio is how many bytes one byte of an encoded body may stand for. What
// people and tools say is far below.
const maxRatio = 100

// decodeBody reads an encoded body, which some clients send (Codex: zstd). It
// reports false, and why, when that cannot be read within bounds: a small body
// may stand for a very large one.
func (s *Server) decodeBody(c *call, encoding []byte) (o inject.Outcome, ok bool) {
	plain, err := capture.Decode(strings.ToLower(strings.TrimSpace(string(encoding))), c.body.Bytes, capture.Decoding{
		Max: s.way().limits.InspectBytes, Ratio: maxRatio, Share: &c.share, Until: c.mem.until,
	})
	switch {
	case err == nil:
		c.plain = plain
		return o, true
	case errors.Is(err, capture.ErrTooLarge):
		return inject.Outcome{Status: inject.StatusSkipped, Reason: inject.ReasonTooLarge}, false
	case errors.Is(err, capture.ErrBusy):
		return inject.Outcome{Status: inject.StatusSkipped, Reason: inject.ReasonBusy}, false
	case errors.Is(err, capture.ErrLate):
		return inject.Outcome{Status: inject.StatusTimeout, Reason: inject.ReasonTooLarge}, false
	}
	return inject.Outcome{Status: inject.StatusSkipped, Reason: inject.ReasonEncoding}, false
}

// text is the body as it is read.
func (c *call) text() []byte {
	if c.plain != nil {
		return c.plain
	}
	return c.body.Bytes
}
