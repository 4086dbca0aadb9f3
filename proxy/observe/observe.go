package observe

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"log/slog"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/graphiti-proxy/graphiti-proxy/inject"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/wire"
)

// Observer reports the requests of one server. It is safe for concurrent use.
type Observer struct {
	*instruments
	tracer  trace.Tracer // nil: nobody traces
	log     *slog.Logger
	prefix  string // of request ids: those of two processes differ
	last    atomic.Uint64
	clients clients
	logs    atomic.Bool // a line for each request
	passed  *passed     // nil: the newest requests are not noted
}

// New makes all instruments, so that a request only has to record numbers. Without a
// tracer there are no spans.
func New(m metric.Meter, t trace.Tracer, log *slog.Logger) (*Observer, error) {
	in, err := newInstruments(m)
	if err != nil {
		return nil, err
	}
	var b [6]byte
	_, _ = rand.Read(b[:]) // never fails
	return &Observer{instruments: in, tracer: t, log: log, prefix: hex.EncodeToString(b[:]) + "-"}, nil
}

// Request is one request, as operators see it. It belongs to the goroutine that
// serves the request.
type Request struct {
	o     *Observer
	id    uint64
	spans *spans // nil: nobody traces
	began time.Time

	memory  *inject.Outcome // what memory did for a message
	passing *passing        // nil: the request is not noted
}

// Begin numbers a request and begins its span. route is its path without variable
// parts; empty when it belongs to no known API.
func (o *Observer) Begin(h *fasthttp.RequestHeader, route string, began time.Time) Request {
	r := Request{o: o, id: o.last.Add(1), began: began}
	r.passing = o.passed.begin(r.id, began)
	if o.tracer != nil {
		r.spans = o.begin(&r, h, route, began)
	}
	return r
}

// AppendID writes the id of the request.
func (r *Request) AppendID(dst []byte) []byte {
	return strconv.AppendUint(append(dst, r.o.prefix...), r.id, 36)
}

// Planned reports what memory did for a request.
func (r *Request) Planned(p *inject.Plan) {
	r.o.planned(p)
	r.spans.planned(p)
}

// Read says that the answer will be read. The result's Report is called when all of it
// was read, and ends the upstream's span.
func (r *Request) Read() Answered { return Answered{r.o, r.spans.handOver(), r.passing, r.id} }

// Unread says that the answer will not be read after all.
func (r *Request) Unread() {
	if r.spans != nil {
		r.spans.handed = false
	}
}

// Answered reports an answer that was read.
type Answered struct {
	o       *Observer
	span    trace.Span // of the upstream; nil: nobody traces
	passing *passing   // of the request with the id, as long as that is noted
	id      uint64
}

// Report reports what the provider said about the answer.
func (a Answered) Report(of *dialect.Answer) {
	u := of.Usage
	a.o.used(u)
	a.o.passed.used(a.passing, a.id, u)
	if a.span != nil {
		endRead(a.span, u)
	}
}

// LogRequests says whether each request is logged.
func (o *Observer) LogRequests(on bool) { o.logs.Store(on) }

// RequestLine is the message of a request's line in the log.
const RequestLine = "request"

// End ends the spans of a request, and logs one line about it: nothing of what was
// said, and of its address only the path without anything that looks like a key.
// status is the answer's; 0: there was none. memory is what memory did; nil when the
// request belongs to no known API.
func (r *Request) End(h *fasthttp.RequestHeader, status int, memory *inject.Outcome) {
	if r.o.logged() {
		r.line(string(h.Method()), loggedPath(h.RequestURI()), status, memory)
	}
	r.headOf(h)
	r.pass(status, false)
	r.end(status)
}

// Relayed reports how relaying an answer ended.
func (o *Observer) Relayed(r wire.Relayed) {
	switch {
	case r.Err == nil:
	case errors.Is(r.Err, wire.ErrGone):
		o.Abandoned()
	default:
		o.log.Warn("an answer is cut off", "error", r.Err)
	}
}

// Streamed returns a function that reports the end of a stream, and of its request. It
// keeps nothing of the head, which is gone by then. End does nothing from now on.
func (r *Request) Streamed(h *fasthttp.RequestHeader, status int, memory *inject.Outcome) func(wire.Relayed) {
	of := *r
	*r = Request{}
	of.memory = nil
	of.headOf(h)
	var method, path string
	logged := of.o.logged()
	if logged {
		method, path = string(h.Method()), loggedPath(h.RequestURI())
		if memory != nil {
			did := *memory // which goes with its request
			of.memory = &did
		}
	}
	return func(relayed wire.Relayed) {
		if !relayed.First.IsZero() {
			of.o.FirstChunk(relayed.First.Sub(of.began))
		}
		of.o.Relayed(relayed)
		if logged {
			of.line(method, path, status, of.memory)
		}
		of.pass(status, true)
		of.end(status)
	}
}

// OfMessage returns a request for a message of a WebSocket that has come now.
func (r *Request) OfMessage(memory *inject.Outcome) Request {
	of := *r
	r.passing = nil
	of.began = time.Now()
	if memory != nil {
		did := *memory // which goes with its request
		of.memory = &did
	}
	return of
}

// EndMessage is End for the request of a message.
func (r *Request) EndMessage(status int) {
	if r.o.logged() {
		r.line("WEBSOCKET", "response.create", status, r.memory)
	}
	if r.passing != nil {
		r.passing.at("response.create")
	}
	r.pass(status, true)
	r.end(status)
}

func (o *Observer) logged() bool {
	return o != nil && o.logs.Load() && o.log.Enabled(context.Background(), slog.LevelInfo)
}

func (r *Request) line(method, path string, status int, memory *inject.Outcome) {
	attrs := append(make([]slog.Attr, 0, 6), slog.String("method", method), slog.String("path", path), slog.Int("status", status),
		slog.Int64("ms", time.Since(r.began).Milliseconds()))
	if memory != nil {
		attrs = append(attrs, slog.String("memory", string(memory.Append(nil))))
	}
	r.o.log.LogAttrs(context.Background(), slog.LevelInfo, RequestLine, append(attrs, slog.String("id", string(r.AppendID(nil))))...)
}
