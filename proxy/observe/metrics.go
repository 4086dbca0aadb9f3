package observe

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/semconv/v1.41.0/genaiconv"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/inject"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect/registry"
)

// instruments are the metrics. The attributes of counters are made only once.
type instruments struct {
	requests   *tally[outcomeKey]      // status × reason × source; about thirty occur
	duration   metric.Float64Histogram // one series
	facts      metric.Int64Counter     // one series
	chars      metric.Int64Counter     // one series
	abandoned  metric.Int64Counter     // one series
	searches   metric.Float64Histogram // scope × source × outcome, 80 series
	repeated   metric.Int64Counter     // one series
	firstChunk metric.Float64Histogram // one series
	answers    *tally[resultKey]       // upstream × result, 7 series for each upstream
	tokens     [3]*tally[usageKey]     // input, cached input, output; at most maxSeries each
	usage      genaiconv.ClientTokenUsage
	operation  genaiconv.ClientOperationDuration
	limited    *tally[string]            // one series for each limit
	lost       *tally[string]            // one series for each reason
	messages   *tally[graphiti.FateName] // one series for each fate
	signs      *tally[string]            // one series for each client of the table
}

type outcomeKey struct {
	status inject.Status
	reason inject.Reason
	source inject.Source
}

type resultKey struct{ upstream, result string }

// usageKey identifies who used tokens of which model.
type usageKey struct{ upstream, model, tenant string }

func (k usageKey) labels() metric.ObserveOption {
	return labels("upstream", k.upstream, "model", k.model, "tenant", k.tenant)
}

// Results of a request to an upstream without an answer.
const (
	Unreachable = "unreachable"
	Timeout     = "timeout"
)

// classes are the classes of statuses, by their first digit.
var classes = [...]string{1: "1xx", 2: "2xx", 3: "3xx", 4: "4xx", 5: "5xx"}

func newInstruments(m metric.Meter) (*instruments, error) {
	var errs []error
	counter := func(name, what string) metric.Int64Counter {
		c, err := m.Int64Counter("graphiti_proxy_"+name, metric.WithDescription(what))
		errs = append(errs, err)
		return c
	}
	histogram := func(name, what string, seconds ...float64) metric.Float64Histogram {
		h, err := m.Float64Histogram("graphiti_proxy_"+name, metric.WithUnit("s"), metric.WithDescription(what), metric.WithExplicitBucketBoundaries(seconds...))
		errs = append(errs, err)
		return h
	}
	in := &instruments{
		requests: newTally(func(k outcomeKey) metric.ObserveOption {
			return labels("status", string(k.status), "reason", string(k.reason), "source", string(k.source))
		}),
		answers:  newTally(func(k resultKey) metric.ObserveOption { return labels("upstream", k.upstream, "result", k.result) }),
		lost:     listed("reason", graphiti.LostReasons),
		messages: listed("fate", graphiti.Fates),
		limited:  listed("limit", []string{"requests", "tokens"}),
		signs:    newTally(func(client string) metric.ObserveOption { return labels("client", client, "sign", "no_place") }),
		duration: histogram("memory_duration", "Time of a request spent on memory.",
			.0001, .0005, .001, .005, .01, .025, .05, .1, .2, .4, .8, 2),
		abandoned: counter("abandoned_requests", "Requests abandoned by the client before the answer's end."),
		facts:     counter("inserted_facts", "Facts in the blocks of newest turns."),
		chars:     counter("inserted_chars", "Characters of the blocks of newest turns."),
		repeated:  counter("repeated_blocks", "Blocks that were sent again unchanged, to keep the beginning of the request unchanged."),
		searches: histogram("recall_duration", "Searches for facts in one group, by source (live: a search) and outcome.",
			.0001, .001, .005, .01, .025, .05, .1, .2, .4, .8, 2),
		firstChunk: histogram("first_chunk_delay", "From a request's arrival until the first of its streamed answer was with the client.",
			.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60),
	}
	for i := range in.tokens {
		in.tokens[i] = newTally(usageKey.labels)
	}
	var err error
	in.usage, err = genaiconv.NewClientTokenUsage(m, metric.WithExplicitBucketBoundaries(1, 16, 256, 1024, 4096, 16384, 65536, 262144, 1048576))
	errs = append(errs, err)
	in.operation, err = genaiconv.NewClientOperationDuration(m, metric.WithExplicitBucketBoundaries(.1, .5, 1, 2.5, 5, 10, 30, 60, 120, 300))
	if err := errors.Join(append(errs, err)...); err != nil {
		return nil, fmt.Errorf("make metrics: %w", err)
	}
	in.expect()
	return in, errors.Join(
		in.tokens[0].report(m, "input_tokens", "Tokens of requests, reported by providers in answers that the proxy read."),
		in.tokens[1].report(m, "cached_input_tokens", "Of those, the tokens that providers read from their prompt caches."),
		in.tokens[2].report(m, "output_tokens", "Tokens of answers, reported by providers."),
		in.requests.report(m, "requests", "Requests of known dialects, by outcome of memory."),
		in.answers.report(m, "upstream_answers", "Requests sent to an upstream, by class of the answer's status, unreachable or timeout."),
		in.messages.report(m, "messages", "Messages of the role user, by fate. A message counts again when its fate changes: open and held messages get another fate."),
		in.limited.report(m, "requests_limited", "Requests refused with status 429, by limit: limits.requests_per_minute or limits.tokens_per_minute."),
		in.lost.report(m, "answers_not_stored", "Lost messages, by reason, which docs/memory.md explains."),
		in.signs.report(m, "client_signs", "Turns without a known place, by client: a rule for the client may be outdated."))
}

// expect adds the known series.
func (in *instruments) expect() {
	for _, name := range dialect.Names() {
		in.signs.plus(name, 0)
	}
	for _, up := range registry.Upstreams {
		for _, result := range append([]string{Unreachable, Timeout}, classes[1:]...) {
			in.answers.plus(resultKey{up, result}, 0)
		}
	}
}

// labels returns attributes from alternating names and values.
func labels(of ...string) metric.MeasurementOption {
	var list []attribute.KeyValue
	for i := 0; i < len(of); i += 2 {
		list = append(list, attribute.String(of[i], of[i+1]))
	}
	return metric.WithAttributeSet(attribute.NewSet(list...))
}

// Outcomes returns the number of requests since the start for each status in the
// X-Graphiti-Memory header, with the reason if there is one ("empty, weak").
func (o *Observer) Outcomes() map[string]int64 {
	out := make(map[string]int64)
	o.requests.each(func(k outcomeKey, n int64) {
		name := string(k.status)
		if k.reason != inject.ReasonNone {
			name += ", " + string(k.reason)
		}
		out[name] += n
	})
	return out
}

// planned records the outcome and the searches of a request.
func (in *instruments) planned(p *inject.Plan) {
	ctx, o := context.Background(), &p.Outcome
	in.requests.add(outcomeKey{o.Status, o.Reason, o.Source})
	in.duration.Record(ctx, o.Took.Seconds())
	if o.Facts > 0 {
		in.facts.Add(ctx, int64(o.Facts))
		in.chars.Add(ctx, int64(o.Chars))
	}
	for i := range p.Searched {
		l := &p.Searched[i]
		outcome := "found"
		switch {
		case l.Err != nil:
			outcome = faultOf(l.Err)
		case l.Found == 0:
			outcome = "empty"
		}
		in.searches.Record(ctx, l.Took.Seconds(), labels("scope", string(l.Scope), "source", string(l.Source), "outcome", outcome))
	}
	repeated := len(p.Inserts)
	if repeated > 0 && o.Status == inject.StatusRecalled && o.Source != inject.SourceSticky {
		repeated-- // the newest turn's block is new
	}
	if repeated > 0 {
		in.repeated.Add(ctx, int64(repeated))
	}
}

// used records an answer's usage, as the provider reported it, and the time since the request was sent.
func (in *instruments) used(m model, u dialect.Usage) {
	if u.Input <= 0 {
		return
	}
	k := in.tokens[0].within(m.usageKey, usageKey{m.upstream, dialect.Other, dialect.Other})
	for i, n := range []int{u.Input, u.Cached, u.Output} {
		in.tokens[i].plus(k, int64(n))
	}
	provider, upstream := genaiconv.ProviderNameAttr(m.provider), attribute.String("upstream", k.upstream)
	model := attribute.String("gen_ai.request.model", k.model)
	ctx := context.Background()
	in.usage.Record(ctx, int64(u.Input), genaiconv.OperationNameChat, provider, genaiconv.TokenTypeInput, model, upstream)
	in.usage.Record(ctx, int64(u.Output), genaiconv.OperationNameChat, provider, genaiconv.TokenTypeOutput, model, upstream)
	in.operation.Record(ctx, time.Since(m.sent).Seconds(), genaiconv.OperationNameChat, provider, model, upstream)
}

// Answer records the status of an upstream's answer.
func (in *instruments) Answer(upstream string, status int) {
	class := "5xx" // also for any higher status
	if n := status / 100; n > 0 && n < len(classes) {
		class = classes[n]
	}
	in.NoAnswer(upstream, class)
}

// NoAnswer records the result of a request without an answer: Unreachable or Timeout.
func (in *instruments) NoAnswer(upstream, result string) {
	in.answers.add(resultKey{upstream, result})
}

// FirstChunk records the time until the client got the first part of a streamed answer.
func (in *instruments) FirstChunk(after time.Duration) {
	in.firstChunk.Record(context.Background(), after.Seconds())
}

// Limited records that a request was refused because of a limit: requests or tokens.
func (in *instruments) Limited(limit string) { in.limited.add(limit) }

// Abandoned records that a client disconnected before the end of its answer.
func (in *instruments) Abandoned() { in.abandoned.Add(context.Background(), 1) }
