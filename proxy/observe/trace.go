package observe

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

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/inject"
)

// spans are the spans of one request: its own, with children for the searches for facts
// and for the upstream. The deliveries of its turn become children later. Methods of a
// nil spans do nothing.
//
// Attributes have the names of OpenTelemetry's semantic conventions for HTTP and for
// generative AI, if these define one.
type spans struct {
	tracer   trace.Tracer
	ctx      context.Context //nolint:containedctx // holds the span that is the parent
	server   trace.Span
	upstream trace.Span // nil before the request is sent
}

// traceContext reads and writes W3C's fields for traces
// (https://www.w3.org/TR/trace-context/).
var traceContext propagation.TraceContext

// begin begins a request's span.
func (o *Observer) begin(r *Request, h *fasthttp.RequestHeader, route string, began time.Time) *spans {
	method := string(h.Method())
	name := method
	if route != "" {
		name += " " + route
	}
	parent := context.Background()
	if sent := string(h.Peek("traceparent")); sent != "" {
		parent = traceContext.Extract(parent, propagation.MapCarrier{"traceparent": sent, "tracestate": string(h.Peek("tracestate"))})
	}
	ctx, span := o.tracer.Start(parent, name, trace.WithSpanKind(trace.SpanKindServer), trace.WithTimestamp(began))
	if span.IsRecording() {
		span.SetAttributes(attribute.String("http.request.method", method), attribute.String("http.route", route),
			attribute.String("graphiti_proxy.request_id", string(r.AppendID(nil))))
	}
	return &spans{tracer: o.tracer, ctx: ctx, server: span}
}

// recording reports whether the spans are recorded.
func (s *spans) recording() bool { return s != nil && s.server.IsRecording() }

func (s *spans) planned(p *inject.Plan) {
	if !s.recording() {
		return
	}
	o := &p.Outcome
	s.server.SetAttributes(
		attribute.String("graphiti_proxy.memory.status", string(o.Status)), attribute.String("graphiti_proxy.memory.reason", string(o.Reason)),
		attribute.String("graphiti_proxy.memory.source", string(o.Source)), attribute.Int("graphiti_proxy.memory.facts", o.Facts),
		attribute.Int("graphiti_proxy.memory.chars", o.Chars), attribute.Float64("graphiti_proxy.memory.duration", o.Took.Seconds()),
		attribute.Int("graphiti_proxy.memory.blocks", len(p.Inserts)),
	)
	for i := range p.Searched {
		l := &p.Searched[i]
		_, span := s.tracer.Start(s.ctx, "recall "+string(l.Scope), trace.WithTimestamp(l.Began), trace.WithAttributes(
			attribute.String("graphiti_proxy.scope", string(l.Scope)), attribute.String("graphiti_proxy.group", hashOf(l.Group)),
			attribute.String("graphiti_proxy.source", string(l.Source)), attribute.Int("graphiti_proxy.facts", l.Found)))
		if l.Err != nil {
			span.SetStatus(codes.Error, faultOf(l.Err))
		}
		span.End(trace.WithTimestamp(l.Began.Add(l.Took)))
	}
}

// did notes the caller, the client, and the first fate of the newest message.
func (s *spans) did(r *Request, d *LogEntry) {
	if !s.recording() || d.API == "" {
		return
	}
	person := "user.id"
	if r.o.hashes.Load() {
		person = "user.hash"
	}
	for _, a := range []attribute.KeyValue{
		attribute.String(person, r.o.personOf(&d.Who)), attribute.String("graphiti_proxy.tenant", r.model.tenant), attribute.String("graphiti_proxy.upstream", d.To),
		attribute.String("graphiti_proxy.client", named(d.Program, nil).shown), attribute.String("graphiti_proxy.fate", string(d.Fate.Name)),
	} {
		if a.Value.AsString() != "" {
			s.server.SetAttributes(a)
		}
	}
	s.server.SetAttributes(attribute.Float64("graphiti_proxy.memory.added", r.model.sent.Sub(r.began).Seconds()))
}

// hashOf returns the hash that replaces a group's id.
func hashOf(group string) string {
	sum := sha256.Sum256([]byte(group))
	return hex.EncodeToString(sum[:8])
}

// faultOf returns the kind of an error without its text, which may contain messages.
func faultOf(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return "timeout"
	}
	return "error"
}

// Send begins the upstream's span. provider and model are empty if the request belongs to
// no known API.
func (r *Request) Send(h *fasthttp.RequestHeader, host, provider string, model []byte) {
	s := r.spans
	if !s.recording() {
		return // Context then returns the request's own span
	}
	name := string(h.Method())
	attrs := []attribute.KeyValue{attribute.String("server.address", host)}
	if provider != "" {
		model := strings.ToValidUTF8(string(model), "")
		name = "chat " + model
		attrs = append(attrs, attribute.String("gen_ai.operation.name", "chat"),
			attribute.String("gen_ai.provider.name", provider), attribute.String("gen_ai.request.model", model))
	}
	s.ctx, s.upstream = s.tracer.Start(s.ctx, name, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(attrs...))
}

// Context returns the header fields with the request's trace for the upstream. They
// replace the client's fields, unless tracing is off.
func (r *Request) Context() (fields []byte, replaced bool) {
	if r.spans == nil {
		return nil, false
	}
	carrier := propagation.MapCarrier{}
	traceContext.Inject(r.spans.ctx, carrier)
	for name, value := range carrier {
		fields = append(append(append(append(fields, name...), ": "...), value...), "\r\n"...)
	}
	return fields, true
}

// Parent returns the request's span as a traceparent field. A turn stores it, so that its
// deliveries become children of the span. It is empty if the span is not sampled.
func (r *Request) Parent() string {
	if r.spans == nil || !r.spans.server.SpanContext().IsSampled() {
		return ""
	}
	fields := propagation.MapCarrier{}
	traceContext.Inject(trace.ContextWithSpan(context.Background(), r.spans.server), fields)
	return fields.Get("traceparent")
}

// end ends the spans of a request that began at a time.
func (s *spans) end(r *graphiti.LoggedRequest, began time.Time) {
	if s == nil {
		return
	}
	if r.Fate != "" { // it may have changed
		s.server.SetAttributes(attribute.String("graphiti_proxy.fate", r.Fate))
	}
	if s.upstream != nil && r.InputTokens > 0 {
		s.upstream.SetAttributes(attribute.Int("gen_ai.usage.input_tokens", r.InputTokens), attribute.Int("gen_ai.usage.output_tokens", r.OutputTokens),
			attribute.Int("gen_ai.usage.cache_read.input_tokens", r.CachedTokens))
	}
	for _, span := range []trace.Span{s.upstream, s.server} {
		if span == nil {
			continue
		}
		span.SetAttributes(attribute.Int("http.response.status_code", r.Status))
		if r.Status >= fasthttp.StatusInternalServerError {
			span.SetStatus(codes.Error, "")
		}
		if span == s.upstream {
			span.End()
		} else {
			span.End(trace.WithTimestamp(began.Add(time.Duration(r.TotalMs * float64(time.Millisecond)))))
		}
	}
}
