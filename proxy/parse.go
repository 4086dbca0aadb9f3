package proxy

import (
	"bytes"
	"errors"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/graphiti-proxy/graphiti-proxy/capture/response"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect/registry"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/identity"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/wire"
)

// barred returns the refusal of a request by its head only; nil if the request may have
// memory. It is called before the body is read, so that a request without memory costs
// no more than a relay. decide finds the refusals by the body.
func (s *decider) barred(m *Memory, h *fasthttp.RequestHeader) *refusal {
	switch {
	case m.Planner == nil:
		return off(m.Off.Reason, "")
	case m.Identity.Multi && !identity.ShowsCredential(h):
		return noCredential
	case !m.Identity.Multi && identity.FromWeb(h):
		s.log.Warn("a request that a page of the web may have sent has no memory; let clients call 127.0.0.1 or localhost, or set identity.mode to multi",
			"host", string(h.Host()[:min(len(h.Host()), 64)]))
		return foreign
	case m.Rules.skipsPath(h.RequestURI()):
		return skippedPath
	}
	return nil
}

const (
	// relayedBody is the number of bytes of a body that are read before it is forwarded,
	// for a request of no dialect.
	relayedBody = 64 << 10

	// copiedBody replaces relayedBody for a request of a dialect without memory, if the
	// request has a Content-Length: to send a short body in one piece is cheaper. A longer
	// body is not read before the head is sent.
	copiedBody = 256 << 10
)

// reading returns the amount of the request's body to read before it is forwarded: all
// of it, up to a limit, if the request may have memory.
func (r *request) reading() wire.Reading {
	w := wire.Reading{Limit: relayedBody, Share: r.share}
	switch {
	case r.route.Dialect == nil:
	case r.barred == nil:
		w.Limit, w.Inspect = r.limits.InspectBytes, true
	case r.head.ContentLength() >= 0:
		w.Limit = copiedBody
	}
	return w
}

// parsed is the content of a request's head and body. No later step changes it.
type parsed struct {
	text     []byte          // the body, decoded
	decoded  bool            // the body was sent with a Content-Encoding
	dialect  dialect.Dialect // of the body; rarely another than that of its path
	conv     *dialect.Conversation
	claims   *identity.Claims
	states   dialect.Place // the place that the client states
	subagent bool          // the request is from a subagent
	recall   bool          // the client allows recall
	ingest   bool          // the client allows ingestion
	asked    bool          // the client asks for memory
}

// parse reads a request. It refuses a request that is barred, has a body of an unknown
// form, or exceeds the limits of memory or time.
func (s *decider) parse(r *request, until time.Time) (p parsed, no *refusal) {
	switch {
	case r.barred != nil:
		if r.memory.Planner == nil {
			missed(r)
		}
		return p, r.barred
	case r.body.Busy:
		return p, busy
	case !r.body.Whole:
		return p, tooLarge
	}
	p.text, p.conv = r.body.Bytes, &r.buffers.conv
	encoding := r.head.Peek(fasthttp.HeaderContentEncoding)
	if len(encoding) > 0 && !wire.FieldIs(encoding, "identity") {
		if p.text, no = decodeBody(r, encoding, until); no != nil {
			return p, no
		}
		p.decoded = true
	}
	p.conv.Limit(dialect.Limits{Messages: r.limits.Messages, Until: until, Room: r.share})
	p.claims = r.buffers.claims.ReadHead(r.head)
	p.dialect = r.route.Dialect
	ok := p.dialect.Parse(p.text, p.conv)
	if meant := registry.Meant(p.dialect); !ok && meant != nil && p.conv.Stopped() == dialect.NotStopped {
		p.dialect = meant
		ok = p.dialect.Parse(p.text, p.conv)
	}
	if !ok {
		return p, stopped(p.conv)
	}
	if p.conv.Model == nil {
		p.conv.Model = r.route.Model
	}
	p.recall, p.ingest, p.asked = wanted(r.head)
	p.subagent = p.conv.Signals(r.head)
	p.claims.ReadBody(p.conv)
	p.states = p.conv.Place(p.claims.Program().Name)
	return p, nil
}

// wanted returns the mode in the request's X-Graphiti-Memory fields.
func wanted(h *fasthttp.RequestHeader) (recall, ingest, asked bool) {
	recall, ingest = true, true
	for _, v := range h.PeekAll(memoryHeader) {
		for word := range bytes.SplitSeq(v, []byte{','}) {
			switch strings.ToLower(string(bytes.TrimSpace(word))) {
			case "":
			case "on":
				asked = true
			case "recall":
				ingest = false
			case "ingest":
				recall = false
			default: // off, and any unknown word
				return false, false, false
			}
		}
	}
	return recall, ingest, asked
}

// missed counts a turn while memory is off. A body that is compressed, or was not read to
// its end, counts as a turn.
func missed(r *request) {
	if r.memory.Off.Missed == nil {
		return
	}
	// The body has at most copiedBody bytes, so this is fast.
	c := &r.buffers.conv
	c.Limit(dialect.Limits{Messages: r.limits.Messages, Room: r.share})
	if r.body.Whole && len(r.head.Peek(fasthttp.HeaderContentEncoding)) == 0 {
		read := r.route.Dialect.Parse(r.body.Bytes, c)
		if c.Stopped() == dialect.NotStopped && (!read || c.Last < 0 || c.Kind != dialect.KindTurn) {
			return
		}
	}
	r.memory.Off.Missed()
}

// maxRatio is the highest compression ratio of an encoded body. The ratio of real
// conversations is far lower.
const maxRatio = 100

// decodeBody decodes a body with a Content-Encoding, which some clients send (Codex:
// zstd). It refuses a body that exceeds the limits when decoded: a small body may decode
// to a very large one.
func decodeBody(r *request, encoding []byte, until time.Time) (plain []byte, no *refusal) {
	plain, err := response.Decode(strings.ToLower(strings.TrimSpace(string(encoding))), r.body.Bytes, response.Decoding{
		Max: r.limits.InspectBytes, Ratio: maxRatio, Share: r.share, Until: until,
	})
	switch {
	case err == nil:
		return plain, nil
	case errors.Is(err, response.ErrTooLarge):
		return nil, tooLarge
	case errors.Is(err, response.ErrBusy):
		return nil, busy
	case errors.Is(err, response.ErrLate):
		return nil, late
	}
	return nil, encoded
}
