package proxy

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/graphiti-proxy/graphiti-proxy/inject"
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
}

type outcomeKey struct {
	status inject.Status
	reason inject.Reason
	source inject.Source
}

func newInstruments(m metric.Meter) (*instruments, error) {
	in := &instruments{recalls: make(map[outcomeKey]metric.AddOption)}
	var err [5]error
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
	for _, e := range err {
		if e != nil {
			return nil, fmt.Errorf("make metrics: %w", e)
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

func (in *instruments) abandoned() { in.left.Add(context.Background(), 1) }
