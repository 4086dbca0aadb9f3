package proxy

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"
	"time"

	"github.com/valyala/fasthttp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/graphiti-proxy/graphiti-proxy/dialect"
	"github.com/graphiti-proxy/graphiti-proxy/inject"
)

// requestTrace tells those who look at traces about one request: a span for
// the request, with children for the looks for facts, for the upstream, and
// later for the deliveries of its turn. Nothing of what was said is in it, no
// credential, and group ids only as hashes. The methods of a nil one do
// nothing. It belongs to the goroutine that serves the request.
//
// Attributes are named after OpenTelemetry's semantic conventions for HTTP and
// for generative AI, where these have a name.
type requestTrace struct {
	tracer   trace.Tracer
	ctx      context.Context //nolint:containedctx // holds the span that is the parent
	server   trace.Span
	upstream trace.Span // nil: not asked yet
	handed   bool       // the upstream's span ends with the answer's last reading
}

// traceContext is how W3C writes down which trace something belongs to
// (https://www.w3.org/TR/trace-context/).
var traceContext propagation.TraceContext

// headerCarrier reads a request's fields.
type headerCarrier struct{ h *fasthttp.RequestHeader }

func (c headerCarrier) Get(key string) string { return string(c.h.Peek(key)) }
func (c headerCarrier) Set(string, string)    { panic("BUG: the client's own fields are not changed") }
func (c headerCarrier) Keys() []string        { return nil }

// startTrace begins a request's span; nil where nobody looks.
func (s *Server) startTrace(c *call, began time.Time) *requestTrace {
	if s.tracer == nil {
		return nil
	}
	h := c.head
	method, route := string(h.Method()), ""
	name := method
	if c.route.dialect != nil {
		route = c.route.match.Route
		name += " " + route
	}
	parent := context.Background()
	if len(h.Peek("traceparent")) > 0 {
		parent = traceContext.Extract(parent, headerCarrier{h})
	}
	ctx, span := s.tracer.Start(parent, name, trace.WithSpanKind(trace.SpanKindServer), trace.WithTimestamp(began))
	if span.IsRecording() {
		span.SetAttributes(attribute.String("http.request.method", method), attribute.String("http.route", route),
			attribute.String("graphiti_proxy.request_id", string(s.ids.append(nil, c.id))))
	}
	return &requestTrace{tracer: s.tracer, ctx: ctx, server: span}
}

// decided tells what memory did.
func (t *requestTrace) decided(d *decision) {
	if t == nil || !d.understood || !t.server.IsRecording() {
		return
	}
	plan, o := &d.plan, &d.plan.Outcome
	t.server.SetAttributes(
		attribute.String("graphiti_proxy.memory.status", string(o.Status)), attribute.String("graphiti_proxy.memory.reason", string(o.Reason)),
		attribute.String("graphiti_proxy.memory.source", string(o.Source)), attribute.Int("graphiti_proxy.memory.facts", o.Facts),
		attribute.Int("graphiti_proxy.memory.chars", o.Chars), attribute.Float64("graphiti_proxy.memory.duration", o.Took.Seconds()),
		attribute.Int("graphiti_proxy.memory.blocks", len(plan.Inserts)),
	)
	for i := range plan.Searched {
		l := &plan.Searched[i]
		_, span := t.tracer.Start(t.ctx, "recall "+string(l.Scope), trace.WithTimestamp(l.Began), trace.WithAttributes(
			attribute.String("graphiti_proxy.scope", string(l.Scope)), attribute.String("graphiti_proxy.group", hashOf(l.Group)),
			attribute.String("graphiti_proxy.source", sourceOf(l)), attribute.Int("graphiti_proxy.facts", l.Found)))
		if l.Err != nil {
			span.SetStatus(codes.Error, faultOf(l.Err))
		}
		span.End(trace.WithTimestamp(l.Began.Add(l.Took)))
	}
}

// hashOf stands for a group.
func hashOf(group string) string {
	sum := sha256.Sum256([]byte(group))
	return hex.EncodeToString(sum[:8])
}

// sourceOf is where the facts of a look came from.
func sourceOf(l *inject.Searched) string {
	if l.Source == "" {
		return "replica"
	}
	return string(l.Source)
}

// faultOf names a fault without its words, which may quote somebody.
func faultOf(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return "timeout"
	}
	return "error"
}

// asks begins the upstream's span.
func (t *requestTrace) asks(c *call) {
	if t == nil || !t.server.IsRecording() {
		return // the request's own context goes on
	}
	name := string(c.head.Method())
	attrs := []attribute.KeyValue{attribute.String("server.address", c.route.upstream.Host)}
	if c.route.dialect != nil {
		model := strings.ToValidUTF8(string(c.conv.Model), "")
		name = "chat " + model
		attrs = append(attrs, attribute.String("gen_ai.operation.name", "chat"),
			attribute.String("gen_ai.provider.name", c.route.provider), attribute.String("gen_ai.request.model", model))
	}
	t.ctx, t.upstream = t.tracer.Start(t.ctx, name, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(attrs...))
}

// appendContext writes the fields that tell the upstream which trace the
// request belongs to, in place of the client's own.
func (t *requestTrace) appendContext(head []byte) []byte {
	fields := propagation.MapCarrier{}
	traceContext.Inject(t.ctx, fields)
	for name, value := range fields {
		head = append(append(append(append(head, name...), ": "...), value...), "\r\n"...)
	}
	return head
}

// parent is what a turn keeps, so that its deliveries can be told; empty where
// nobody looks.
func (t *requestTrace) parent() string {
	if t == nil || !t.server.SpanContext().IsSampled() {
		return ""
	}
	fields := propagation.MapCarrier{}
	traceContext.Inject(trace.ContextWithSpan(context.Background(), t.server), fields)
	return fields.Get("traceparent")
}

// awaitAnswer has the upstream's span end when the answer has been read, and
// returns what is then to be called.
func (t *requestTrace) awaitAnswer() func(dialect.Answer) {
	if t == nil || t.upstream == nil || !t.upstream.IsRecording() {
		return func(dialect.Answer) {}
	}
	t.handed = true
	span := t.upstream
	return func(a dialect.Answer) {
		if u := a.Usage; u != (dialect.Usage{}) {
			span.SetAttributes(attribute.Int("gen_ai.usage.input_tokens", u.Input), attribute.Int("gen_ai.usage.output_tokens", u.Output),
				attribute.Int("gen_ai.usage.cache_read.input_tokens", u.Cached))
		}
		span.End()
	}
}

// unread says that there will be no reading of the answer.
func (t *requestTrace) unread() {
	if t != nil {
		t.handed = false
	}
}

// end ends what did not end yet. status is what the client was told.
func (t *requestTrace) end(status int) {
	if t == nil {
		return
	}
	if !t.server.IsRecording() {
		t.server.End()
		return
	}
	code := attribute.Int("http.response.status_code", status)
	for _, span := range []trace.Span{t.upstream, t.server} {
		if span == nil {
			continue
		}
		span.SetAttributes(code)
		if status >= fasthttp.StatusInternalServerError {
			span.SetStatus(codes.Error, "")
		}
	}
	if t.upstream != nil && !t.handed {
		t.upstream.End()
	}
	t.server.End()
}
