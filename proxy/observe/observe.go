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

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/inject"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/wire"
)

// Observer reports the requests of one server. It is safe for concurrent use.
type Observer struct {
	*instruments
	former  [16]atomic.Int64 // messages that have left a fate, in the order of graphiti.Fates
	tracer  trace.Tracer     // nil if tracing is off
	log     *slog.Logger
	prefix  string // of request ids, different for each process
	last    atomic.Uint64
	clients clients
	logs    atomic.Bool // log a line for each request
	hashes  atomic.Bool // show hashes of people
	passed  passed
}

// New returns an Observer with all instruments, so that a request only records numbers.
// Without a tracer there are no spans.
func New(m metric.Meter, t trace.Tracer, log *slog.Logger) (*Observer, error) {
	in, err := newInstruments(m)
	if err != nil {
		return nil, err
	}
	var b [6]byte
	_, _ = rand.Read(b[:]) // never fails
	return &Observer{instruments: in, tracer: t, log: log, prefix: hex.EncodeToString(b[:]) + "-"}, nil
}

// Request reports one request. It belongs to the goroutine that serves the request.
type Request struct {
	o *Observer
	*passing
	spans *spans // nil if tracing is off
}

// Begin numbers a request and begins its span. route is its path without variable parts;
// empty if it belongs to no known API.
func (o *Observer) Begin(h *fasthttp.RequestHeader, route string, began time.Time) Request {
	r := Request{o: o, passing: &passing{id: o.last.Add(1), began: began, arrived: began}}
	if o.tracer != nil {
		r.spans = o.begin(&r, h, route, began)
	}
	return r
}

// AppendID writes the id of the request.
func (r *Request) AppendID(dst []byte) []byte { return r.o.appendID(dst, r.id) }

func (o *Observer) appendID(dst []byte, id uint64) []byte {
	return strconv.AppendUint(append(dst, o.prefix...), id, 36)
}

// Planned reports the plan of a request.
func (r *Request) Planned(p *inject.Plan) {
	r.o.planned(p)
	r.spans.planned(p)
}

// Read notes that the answer will be read. The caller must call Report at the end of the answer.
func (r Request) Read() Request {
	r.o.passed.reading(r.passing, true)
	return r
}

// Unread revokes Read: the answer will not be read.
func (r *Request) Unread() { r.o.passed.reading(r.passing, false) }

// Report reports the usage of tokens of an answer that was read.
func (r *Request) Report(of *dialect.Answer) {
	r.o.used(r.model, of.Usage)
	if r.o.passed.used(r.passing, of.Usage) {
		r.whole()
	}
}

// Model returns the name of the requested model, which answers.
func (r *Request) Model() string { return r.model.model }

// Settled reports the new fate of the request's message, or of the earlier ones, before or after the
// end of the request.
func (r *Request) Settled(f graphiti.Fate) {
	if r.o != nil && r.o.passed.settled(r.passing, f) && r.o.logged() {
		r.o.log.LogAttrs(context.Background(), slog.LevelInfo, "message settled", append(fateOf(f), slog.String("id", string(r.AppendID(nil))))...)
	}
}

// fateOf returns the attributes of a fate.
func fateOf(f graphiti.Fate) (list []slog.Attr) {
	if f.Name != graphiti.FateNone {
		list = append(list, slog.String("fate", string(f.Name)))
	}
	if f.Reason != "" {
		list = append(list, slog.String("fate_reason", f.Reason))
	}
	if f.Earlier != "" {
		list = append(list, slog.String("earlier_fates", f.Earlier))
	}
	return list
}

// LogRequests turns the log line for each request on or off. If hashes is set, logs, traces and the
// newest requests have hashes of people in place of their names.
func (o *Observer) LogRequests(on, hashes bool) {
	o.logs.Store(on)
	o.hashes.Store(hashes)
}

// RequestLine is the message of a request's line in the log.
const RequestLine = "request"

// End ends the spans of a request, and logs one line about it, unless Report is still to do so. The line
// contains no messages, and only the path of the address, without possible keys. status is the
// answer's; 0 if there was none. memory is nil if the request belongs to no known API.
func (r *Request) End(h *fasthttp.RequestHeader, status int, memory *inject.Outcome) {
	r.at(string(h.Method()), loggedPath(h.RequestURI()))
	if r.Client == "" {
		r.named(dialect.Program{}, h)
	}
	if memory != nil {
		r.outcome = string(memory.Append(nil))
	}
	r.EndMessage(status)
}

// Relayed reports the end of an answer's relay.
func (o *Observer) Relayed(r wire.Relayed) {
	switch {
	case r.Err == nil:
	case errors.Is(r.Err, wire.ErrGone):
		o.Abandoned()
	default:
		o.log.Warn("an answer is cut off", "error", r.Err)
	}
}

// Streamed notes that the answer is a stream, and the time of its first byte, or zero.
func (r *Request) Streamed(first time.Time) {
	r.Stream = true
	if !first.IsZero() {
		r.o.FirstChunk(first.Sub(r.began))
	}
}

// OfMessage returns the request for a message of a WebSocket.
func (r Request) OfMessage(memory *inject.Outcome) Request {
	if memory != nil { // which goes with its request
		r.outcome = string(memory.Append(nil))
	}
	r.Stream = true
	r.at("WEBSOCKET", "response.create")
	return r
}

// EndMessage is End for the request of a message.
func (r *Request) EndMessage(status int) {
	r.Status, r.TotalMs = status, milliseconds(time.Since(r.began))
	if r.o.passed.end(r.passing) {
		r.whole()
	}
}

func (o *Observer) logged() bool {
	return o.logs.Load() && o.log.Enabled(context.Background(), slog.LevelInfo)
}

// whole ends the spans of a request that has ended and whose answer was read, and logs it.
func (r *Request) whole() {
	if r.spans == nil && !r.o.logged() {
		return
	}
	r.o.passed.mu.Lock()
	shown, fate := r.shown(r.o, 0), r.fate
	r.o.passed.mu.Unlock()
	r.spans.end(&shown, r.began)
	if r.o.logged() {
		r.o.line(r.passing, &shown, fate)
	}
}

// line logs a request.
func (o *Observer) line(p *passing, r *graphiti.LoggedRequest, fate graphiti.Fate) {
	// Logger.LogAttrs would also look up its caller, which no handler shows.
	line := slog.NewRecord(time.Now(), slog.LevelInfo, RequestLine, 0)
	line.AddAttrs(slog.String("method", p.method), slog.String("path", r.Path), slog.Int("status", r.Status), slog.Int64("ms", int64(r.TotalMs)))
	texts := func(list ...string) {
		for i := 0; i < len(list); i += 2 {
			if list[i+1] != "" {
				line.AddAttrs(slog.String(list[i], list[i+1]))
			}
		}
	}
	texts("memory", p.outcome)
	line.AddAttrs(fateOf(fate)...)
	texts("client", r.Client, "model", r.Model, "upstream", r.Upstream, "person", r.Person, "tenant", r.Tenant)
	if r.Memory != "" {
		line.AddAttrs(slog.Int("chars", r.Chars), slog.Float64("memory_ms", r.MemoryMs), slog.Float64("added_ms", r.AddedMs))
	}
	if r.InputTokens > 0 {
		line.AddAttrs(slog.Int("input_tokens", r.InputTokens), slog.Int("cached_tokens", r.CachedTokens), slog.Int("output_tokens", r.OutputTokens))
	}
	line.AddAttrs(slog.String("id", r.ID))
	_ = o.log.Handler().Handle(context.Background(), line) // as Logger does
}
