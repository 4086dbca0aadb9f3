package proxy

import (
	"github.com/graphiti-proxy/graphiti-proxy/proxy/wire"
)

// memoryHeader is the field in which a request chooses what memory does, and
// an answer says what it did.
const memoryHeader = "X-Graphiti-Memory"

// requestHeader names a request in an answer and in the log.
const requestHeader = "X-Graphiti-Request-Id"

// ours reports whether a field is one of those that clients address to the
// proxy. They never reach the upstream.
func ours(name []byte) bool {
	switch len(name) {
	case 15:
		return wire.FieldIs(name, "x-graphiti-user")
	case 16:
		return wire.FieldIs(name, "x-graphiti-agent")
	case 17:
		return wire.FieldIs(name, "x-graphiti-memory")
	case 18:
		return wire.FieldIs(name, "x-graphiti-session")
	case 20:
		return wire.FieldIs(name, "x-graphiti-workspace")
	case 23:
		return wire.FieldIs(name, "x-graphiti-system-actor")
	}
	return false
}

// onlyOurs reports whether a field of an answer is one that only the proxy
// writes.
func onlyOurs(name []byte) bool {
	return wire.FieldIs(name, "x-graphiti-memory") || wire.FieldIs(name, "x-graphiti-request-id")
}

// answerFields are the lines that say what memory did, for the head of an answer
// with this status.
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
