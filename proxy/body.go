package proxy

import (
	"errors"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/graphiti-proxy/graphiti-proxy/capture/response"
	"github.com/graphiti-proxy/graphiti-proxy/inject"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/identity"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/memo"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/wire"
)

// barred returns why a request cannot have memory, by its head alone; nil: it
// may. It is asked before the body is read, so that a request without memory
// costs no more than relaying it. What only the body tells, decide finds out.
func (s *decider) barred(m *Memory, h *fasthttp.RequestHeader) *refusal {
	switch {
	case m.Planner == nil:
		return off(m.Off, "")
	case m.Identity.Multi && !identity.ShowsCredential(h):
		return off(inject.ReasonNobody, nobody)
	case !m.Identity.Multi && identity.FromWeb(h):
		s.warnForeign(h)
		return off(inject.ReasonUntrusted, fromWeb)
	case m.Rules.skipsPath(h.RequestURI()):
		return off(inject.ReasonOptOut, "")
	}
	return nil
}

// Why a caller has no memory, for people.
const (
	nobody      = "no person and no actor is known"
	fromWeb     = "a page of the web may have sent it"
	doubted     = "the operator has not confirmed who this person of identity.users_file is"
	contradicts = "a header that says whose memory it is stands twice, with different values, or its signature is not valid"
)

// stranger is why a caller has no memory; nil: they may.
func (s *decider) stranger(r *request, caller *identity.Caller) *refusal {
	switch {
	case caller.Contradicts:
		return off(inject.ReasonUntrusted, contradicts)
	case caller.Doubted:
		return off(inject.ReasonUntrusted, doubted)
	case !caller.Known:
		return off(inject.ReasonNobody, nobody)
	case caller.Foreign:
		s.warnForeign(r.head)
		return off(inject.ReasonUntrusted, fromWeb)
	}
	return nil
}

func (s *decider) warnForeign(h *fasthttp.RequestHeader) {
	s.log.Warn("a request that a page of the web may have sent has no memory; let clients call 127.0.0.1 or localhost, or set identity.mode to multi",
		"host", string(h.Host()[:min(len(h.Host()), 64)]))
}

const (
	// relayedBody is how much of a body is read before it is sent on, where
	// nothing in it is of interest.
	relayedBody = 64 << 10

	// copiedBody is likewise for a request of a dialect that has no memory and
	// says how long it is: sending it at once is cheaper. Of a longer one
	// nothing is read before.
	copiedBody = 256 << 10
)

// reading is how much of a request's body is read before it is sent on: all of
// it where the request may have memory.
func (r *request) reading() wire.Reading {
	w := wire.Reading{Limit: relayedBody, Share: &r.share}
	switch {
	case r.route.dialect == nil:
	case r.barred == nil:
		w.Limit, w.Inspect = r.limits.InspectBytes, true
	case r.head.ContentLength() >= 0:
		w.Limit = copiedBody
	}
	return w
}

// parse reads the body. It returns why that may not be, was not understood, or
// takes more memory or time than there is.
func (s *decider) parse(r *request, until time.Time) *refusal {
	switch {
	case r.barred != nil:
		if r.memory.Planner == nil {
			missed(r)
		}
		return r.barred
	case r.body.Busy:
		return skipped(inject.ReasonBusy)
	case !r.body.Whole:
		return skipped(inject.ReasonTooLarge)
	}
	encoding := r.head.Peek(fasthttp.HeaderContentEncoding)
	if len(encoding) > 0 && !wire.FieldIs(encoding, "identity") {
		if no := decodeBody(r, encoding, until); no != nil {
			return no
		}
	}
	memo.Lend(&r.conv, len(r.text()))
	r.conv.Limit(dialect.Limits{Messages: r.limits.Messages, Until: until, Room: &r.share})
	if s.read(r) {
		if r.conv.Model == nil {
			r.conv.Model = r.route.match.Model
		}
		return nil
	}
	o, ok := inject.Stopped(&r.conv)
	if !ok {
		o.Status = inject.StatusSkipped
	}
	return &refusal{Outcome: o}
}

// read reads the body, a long one from where the one before it in the
// conversation ended.
func (s *decider) read(r *request) bool {
	if !s.memo.Worth(len(r.text())) {
		return r.route.dialect.Parse(r.text(), &r.conv)
	}
	var buf [256]byte
	return s.memo.Parse(r.route.dialect, identity.AppendCredentials(buf[:0], r.head), r.text(), &r.conv, &r.known)
}

// missed counts a turn that memory is off for. What was not read whole, or is
// compressed, counts as one.
func missed(r *request) {
	if r.memory.Missed == nil {
		return
	}
	// No more than copiedBody is there, which takes next to no time.
	r.conv.Limit(dialect.Limits{Messages: r.limits.Messages, Room: &r.share})
	if r.body.Whole && len(r.head.Peek(fasthttp.HeaderContentEncoding)) == 0 {
		read := r.route.dialect.Parse(r.text(), &r.conv)
		if _, stopped := inject.Stopped(&r.conv); !stopped && (!read || r.conv.Last < 0 || r.conv.Kind != dialect.KindTurn) {
			return
		}
	}
	r.memory.Missed()
}

// maxRatio is how many bytes one byte of an encoded body may stand for. What
// people and tools say is far below.
const maxRatio = 100

// decodeBody reads an encoded body, which some clients send (Codex: zstd). It
// returns why that cannot be read within bounds: a small body may stand for a
// very large one.
func decodeBody(r *request, encoding []byte, until time.Time) *refusal {
	plain, err := response.Decode(strings.ToLower(strings.TrimSpace(string(encoding))), r.body.Bytes, response.Decoding{
		Max: r.limits.InspectBytes, Ratio: maxRatio, Share: &r.share, Until: until,
	})
	switch {
	case err == nil:
		r.plain = plain
		return nil
	case errors.Is(err, response.ErrTooLarge):
		return skipped(inject.ReasonTooLarge)
	case errors.Is(err, response.ErrBusy):
		return skipped(inject.ReasonBusy)
	case errors.Is(err, response.ErrLate):
		return &refusal{Outcome: inject.Outcome{Status: inject.StatusTimeout, Reason: inject.ReasonTooLarge}}
	}
	return skipped(inject.ReasonEncoding)
}
