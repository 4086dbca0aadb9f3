package proxy

import (
	"strings"

	"github.com/graphiti-proxy/graphiti-proxy/capture"
)

// decodeBody reads an encoded body, which some clients send (Codex: zstd). It
// reports false when that cannot be read, or would be too large: a small body
// may stand for a very large one.
func (s *Server) decodeBody(c *call, encoding []byte) bool {
	plain, err := capture.Decode(strings.ToLower(strings.TrimSpace(string(encoding))), c.body, s.way().limits.InspectBytes)
	if err != nil {
		return false
	}
	c.plain = plain
	return true
}

// text is the body as it is read.
func (c *call) text() []byte {
	if c.plain != nil {
		return c.plain
	}
	return c.body
}

// unpack has the body sent as it was read, because something is inserted into
// it. An encoded body in which nothing is inserted is sent as it came.
func (c *call) unpack() {
	if c.plain != nil {
		c.body = c.plain
	}
}
