package proxy

import (
	"github.com/graphiti-proxy/graphiti-proxy/proxy/wire"
)

// memoryHeader is the field for the memory's mode in a request, and for its outcome in
// an answer.
const memoryHeader = "X-Graphiti-Memory"

// requestHeader is the field for the request's id in an answer. The log has the same id.
const requestHeader = "X-Graphiti-Request-Id"

// ours reports whether a field of a request is for the proxy. Such fields never reach the
// upstream.
func ours(name []byte) bool { return wire.FieldIn(name, ownFields) }

var ownFields = []string{"x-graphiti-user", "x-graphiti-agent", "x-graphiti-memory", "x-graphiti-session", "x-graphiti-workspace", "x-graphiti-system-actor"}

// onlyOurs reports whether only the proxy may write a field of an answer.
func onlyOurs(name []byte) bool {
	return wire.FieldIs(name, "x-graphiti-memory") || wire.FieldIs(name, "x-graphiti-request-id")
}

// answerFields returns the proxy's own lines for the head of an answer with this status:
// the memory's outcome and the request's id.
func (c *call) answerFields(d *decision, status int) []byte {
	if !d.understood || status < 200 {
		return nil
	}
	b := c.fields[:0]
	if !rejected(status) {
		b = append(append(b, memoryHeader...), ": "...)
		b = append(d.plan.Outcome.Append(b), "\r\n"...)
	}
	b = append(append(b, requestHeader...), ": "...)
	c.fields = append(c.seen.AppendID(b), "\r\n"...)
	return c.fields
}
