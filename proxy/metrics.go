package proxy

import (
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/graphiti-proxy/graphiti-proxy/dialect"
	"github.com/graphiti-proxy/graphiti-proxy/dialect/registry"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/inject"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/wire"
)

// instruments are made once, with their attributes: a call records numbers and
// nothing else.
type instruments struct {
	// requests: dialect × status × reason, at most 100 series.
	recalls map[outcomeKey]metric.AddOption
	count   metric.Int64Counter

	took  metric.Float64Histogram // one series
	facts metric.Int64Counter     // one series
	chars metric.Int64Counter     // one series
	left  metric.Int64Counter     // one series

	looks    map[lookKey]metric.MeasurementOption // scope × source × outcome, 80 series
	look     metric.Float64Histogram
	repeated metric.Int64Counter     // one series
	first    metric.Float64Histogram // one series
	answers  metric.Int64Counter     // upstream × result, 7 series for each upstream
	results  map[resultKey]metric.AddOption
	input    metric.Int64Counter // one series
	cached   metric.Int64Counter // one series
}

// lookKey tells looks for facts apart.
type lookKey struct {
	scope           graphiti.Scope
	source, outcome string
}

// resultKey tells what came of requests to upstreams apart.
type resultKey struct{ upstream, result string }

// What comes of a request to an upstream, other than the class of a status.
const (
	resultUnreachable = "unreachable"
	resultTimeout     = "timeout"
)

// classes are those of statuses, by their first digit.
var classes = [...]string{1: "1xx", 2: "2xx", 3: "3xx", 4: "4xx", 5: "5xx"}

type outcomeKey struct {
	status inject.Status
	reason inject.Reason
	source inject.Source
}

func newInstruments(m metric.Meter) (*instruments, error) {
	in := &instruments{recalls: make(map[outcomeKey]metric.AddOption)}
	var err [11]error
	in.count, err[0] = m.Int64Counter("graphiti_proxy_requests",
		metric.WithDescription("Requests of understood dialects, by what memory did."))
	in.took, err[1] = m.Float64Histogram("graphiti_proxy_memory_duration", metric.WithUnit("s"),
		metric.WithDescription("Time that memory took of a request."),
		metric.WithExplicitBucketBoundaries(.0001, .0005, .001, .005, .01, .025, .05, .1, .2, .4, .8, 2))
	in.facts, err[2] = m.Int64Counter("graphiti_proxy_inserted_facts",
		metric.WithDescription("Facts in the blocks of newest turns."))
	in.chars, err[3] = m.Int64Counter("graphiti_proxy_inserted_chars",
		metric.WithDescription("Characters of the blocks of newest turns."))
	in.left, err[4] = m.Int64Counter("graphiti_proxy_abandoned_requests",
		metric.WithDescription("Requests whose client left before the answer's end."))
	in.look, err[5] = m.Float64Histogram("graphiti_proxy_recall_duration", metric.WithUnit("s"),
		metric.WithDescription("Looks for facts in one group, by where they came from (live: a search; cache, stale: this process; replica: another one) and what came of it."),
		metric.WithExplicitBucketBoundaries(.0001, .001, .005, .01, .025, .05, .1, .2, .4, .8, 2))
	in.repeated, err[6] = m.Int64Counter("graphiti_proxy_repeated_blocks",
		metric.WithDescription("Blocks that were sent again as they were, so that the beginning of the request stays what it was."))
	in.first, err[7] = m.Float64Histogram("graphiti_proxy_first_chunk_delay", metric.WithUnit("s"),
		metric.WithDescription("From a request's arrival until the first of its streamed answer was with the client."),
		metric.WithExplicitBucketBoundaries(.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60))
	in.input, err[8] = m.Int64Counter("graphiti_proxy_input_tokens",
		metric.WithDescription("Tokens of requests, as providers said in answers that were read."))
	in.cached, err[9] = m.Int64Counter("graphiti_proxy_cached_input_tokens",
		metric.WithDescription("Of those, the tokens that providers read from their prompt caches."))
	in.answers, err[10] = m.Int64Counter("graphiti_proxy_upstream_answers",
		metric.WithDescription("Requests that were sent to an upstream, by the class of the answer's status; unreachable: there was none, or it broke off in its head; timeout: it did not come in time."))
	for _, e := range err {
		if e != nil {
			return nil, fmt.Errorf("make metrics: %w", e)
		}
	}
	in.results = make(map[resultKey]metric.AddOption)
	for _, up := range registry.Upstreams {
		for _, result := range append([]string{resultUnreachable, resultTimeout}, classes[1:]...) {
			o := metric.WithAttributeSet(attribute.NewSet(attribute.String("upstream", up), attribute.String("result", result)))
			in.results[resultKey{up, result}] = o
			in.answers.Add(context.Background(), 0, o) // what is there from the beginning can be seen to rise
		}
	}
	in.looks = make(map[lookKey]metric.MeasurementOption)
	for _, scope := range []graphiti.Scope{graphiti.ScopeSession, graphiti.ScopeWorkspace, graphiti.ScopeUser, graphiti.ScopeAgent, graphiti.ScopeSystem} {
		for _, source := range []string{"live", "cache", "stale", "replica"} {
			for _, outcome := range []string{"found", "empty", "timeout", "error"} {
				in.looks[lookKey{scope, source, outcome}] = metric.WithAttributeSet(attribute.NewSet(
					attribute.String("scope", string(scope)), attribute.String("source", source), attribute.String("outcome", outcome)))
			}
		}
	}
	for _, st := range inject.Statuses {
		for _, re := range inject.Reasons {
			for _, so := range inject.Sources {
				in.recalls[outcomeKey{st, re, so}] = metric.WithAttributeSet(attribute.NewSet(
					attribute.String("status", string(st)), attribute.String("reason", string(re)), attribute.String("source", string(so))))
			}
		}
	}
	return in, nil
}

// recall records one outcome.
func (in *instruments) recall(o *inject.Outcome) {
	ctx := context.Background()
	in.count.Add(ctx, 1, in.recalls[outcomeKey{o.Status, o.Reason, o.Source}])
	in.took.Record(ctx, o.Took.Seconds())
	if o.Facts > 0 {
		in.facts.Add(ctx, int64(o.Facts))
		in.chars.Add(ctx, int64(o.Chars))
	}
}

// planned records what a plan took beside its outcome.
func (in *instruments) planned(p *inject.Plan) {
	ctx := context.Background()
	for i := range p.Searched {
		l := &p.Searched[i]
		outcome := "found"
		switch {
		case l.Err != nil:
			outcome = faultOf(l.Err)
		case l.Found == 0:
			outcome = "empty"
		}
		if o, ok := in.looks[lookKey{l.Scope, sourceOf(l), outcome}]; ok {
			in.look.Record(ctx, l.Took.Seconds(), o)
		}
	}
	repeated := len(p.Inserts)
	if repeated > 0 && p.Outcome.Status == inject.StatusRecalled && p.Outcome.Source != inject.SourceSticky {
		repeated-- // the newest turn's is new
	}
	if repeated > 0 {
		in.repeated.Add(ctx, int64(repeated))
	}
}

// used records what a provider said about an answer.
func (in *instruments) used(u dialect.Usage) {
	if u.Input > 0 {
		in.input.Add(context.Background(), int64(u.Input))
		in.cached.Add(context.Background(), int64(u.Cached))
	}
}

// answered records the status of an upstream's answer.
func (in *instruments) answered(u *wire.Upstream, status int) {
	class := "5xx" // beyond them all
	if n := status / 100; n > 0 && n < len(classes) {
		class = classes[n]
	}
	in.answers.Add(context.Background(), 1, in.results[resultKey{u.Name, class}])
}

// failed records that there was none.
func (in *instruments) failed(u *wire.Upstream, result string) {
	in.answers.Add(context.Background(), 1, in.results[resultKey{u.Name, result}])
}

func (in *instruments) firstPiece(after time.Duration) {
	in.first.Record(context.Background(), after.Seconds())
}

func (in *instruments) abandoned() { in.left.Add(context.Background(), 1) }
