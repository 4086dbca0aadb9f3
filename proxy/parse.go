package proxy

import (
	"bytes"
	"errors"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/graphiti-proxy/graphiti-proxy/capture/response"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
	"github.com/graphiti-proxy/graphiti-proxy/internal/memo"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/identity"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/wire"
)

// barred returns why a request cannot have memory, by its head only; nil: it may. It is
// asked before the body is read, so that a request without memory costs no more than
// relaying it. decide finds what only the body says.
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
	// relayedBody is how much of a body is read before it is sent on, where
	// nothing in it is of interest.
	relayedBody = 64 << 10

	// copiedBody is the same for a request of a dialect that says how long its body is,
	// but has no memory: to send a short body at once is cheaper. Of a longer body
	// nothing is read before the head is sent.
	copiedBody = 256 << 10
)

// reading is how much of a request's body is read before it is sent on: all of
// it where the request may have memory.
func (r *request) reading() wire.Reading {
	w := wire.Reading{Limit: relayedBody, Share: r.share}
	switch {
	case r.route.dialect == nil:
	case r.barred == nil:
		w.Limit, w.Inspect = r.limits.InspectBytes, true
	case r.head.ContentLength() >= 0:
		w.Limit = copiedBody
	}
	return w
}

// parsed is what a request says, in its head and its body. No later step changes
// any of it.
type parsed struct {
	text     []byte // of the body, as it is read
	decoded  bool   // the body itself is encoded
	conv     *dialect.Conversation
	claims   *identity.Claims
	states   dialect.Place // where the client says that it works
	subagent bool          // one speaks
	recall   bool          // the client wants it
	ingest   bool          // likewise
}

// parse reads a request. It refuses one whose body may not be read, was not
// understood, or takes more memory or time than there is.
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
	memo.Lend(p.conv, len(p.text))
	p.conv.Limit(dialect.Limits{Messages: r.limits.Messages, Until: until, Room: r.share})
	p.claims = r.buffers.claims.ReadHead(r.head)
	known, ok := s.read(r.route.dialect, &p, &r.buffers.known)
	if !ok {
		return p, stopped(p.conv)
	}
	if p.conv.Model == nil {
		p.conv.Model = r.route.match.Model
	}
	p.recall, p.ingest = wanted(r.head)
	p.subagent = p.conv.Signals(r.head)
	p.claims.ReadBody(p.conv)
	p.states = p.conv.Place(p.claims.Program().Name, known)
	return p, nil
}

// read reads the body, a long one from where the one before it in the
// conversation ended: then something may be known of its prompts too.
func (s *decider) read(d dialect.Dialect, p *parsed, known *memo.Reading) (dialect.Prompts, bool) {
	if !s.memo.Worth(len(p.text)) {
		return nil, d.Parse(p.text, p.conv)
	}
	var buf [256]byte
	return known, s.memo.Parse(d, p.claims.AppendCredentials(buf[:0]), p.text, p.conv, known)
}

// wanted is what the client says about memory.
func wanted(h *fasthttp.RequestHeader) (recall, ingest bool) {
	recall, ingest = true, true
	for _, v := range h.PeekAll(memoryHeader) {
		for word := range bytes.SplitSeq(v, []byte{','}) {
			switch strings.ToLower(string(bytes.TrimSpace(word))) {
			case "", "on":
			case "recall":
				ingest = false
			case "ingest":
				recall = false
			default: // off, and what may be meant so
				return false, false
			}
		}
	}
	return recall, ingest
}

// missed counts a turn that memory is off for. What was not read whole, or is
// compressed, counts as one.
func missed(r *request) {
	if r.memory.Off.Missed == nil {
		return
	}
	// No more than copiedBody is there, which takes next to no time.
	c := &r.buffers.conv
	c.Limit(dialect.Limits{Messages: r.limits.Messages, Room: r.share})
	if r.body.Whole && len(r.head.Peek(fasthttp.HeaderContentEncoding)) == 0 {
		read := r.route.dialect.Parse(r.body.Bytes, c)
		if c.Stopped() == dialect.NotStopped && (!read || c.Last < 0 || c.Kind != dialect.KindTurn) {
			return
		}
	}
	r.memory.Off.Missed()
}

// maxRatio is how many bytes one byte of an encoded body may stand for. What
// people and tools say is far below.
const maxRatio = 100

// decodeBody reads an encoded body, which some clients send (Codex: zstd). It
// refuses one that cannot be read within bounds: a small body may stand for a
// very large one.
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
