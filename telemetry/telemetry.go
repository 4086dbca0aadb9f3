// Package telemetry owns what is said of the proxy to those who run it: metrics
// for Prometheus, metrics and traces for an OpenTelemetry collector, and how
// often the same warning is logged.
//
// It must not know who speaks or what was said. Of our packages it may import
// capture, for its counts.
package telemetry

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	otelprom "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/graphiti-proxy/graphiti-proxy/capture"
)

// Options configures telemetry. The standard OTEL_* variables of the environment
// count beside it.
type Options struct {
	Endpoint string // of an OpenTelemetry collector; empty: none
	Traces   bool
	Metrics  bool
	Sample   float64 // of traces

	Version  string
	Instance string // of this process, for people
	Log      *slog.Logger
}

// Telemetry collects metrics, shows them to Prometheus, and sends them and
// spans to a collector where there is one.
type Telemetry struct {
	provider *sdkmetric.MeterProvider
	registry *prometheus.Registry
	spans    *sdktrace.TracerProvider // nil: nobody looks
	version  string
}

// New prepares metrics, and what is sent to a collector.
func New(o Options) (*Telemetry, error) {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	exporter, err := otelprom.New(otelprom.WithRegisterer(registry), otelprom.WithoutScopeInfo(), otelprom.WithoutTargetInfo())
	if err != nil {
		return nil, fmt.Errorf("prepare metrics: %w", err)
	}
	options := []sdkmetric.Option{sdkmetric.WithReader(exporter)}
	out, err := newCollector(o)
	if err != nil {
		return nil, err
	}
	if out.metrics != nil {
		options = append(options, sdkmetric.WithReader(out.metrics), sdkmetric.WithResource(out.resource))
	}
	return &Telemetry{sdkmetric.NewMeterProvider(options...), registry, out.spans, o.Version}, nil
}

// Tracer makes spans; nil: nobody looks.
func (t *Telemetry) Tracer() trace.Tracer {
	if t.spans == nil {
		return nil
	}
	return t.spans.Tracer("github.com/graphiti-proxy/graphiti-proxy", trace.WithInstrumentationVersion(t.version))
}

// Meter makes metrics.
func (t *Telemetry) Meter() metric.Meter {
	return t.provider.Meter("github.com/graphiti-proxy/graphiti-proxy")
}

// Handler shows the metrics to Prometheus.
func (t *Telemetry) Handler() http.Handler {
	return promhttp.HandlerFor(t.registry, promhttp.HandlerOpts{})
}

// Shutdown sends what is left, within the time that a collector may take.
func (t *Telemetry) Shutdown(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, CollectorGrace)
	defer cancel()
	if t.spans != nil {
		_ = t.spans.Shutdown(ctx) // a collector that is gone is no reason to fail
	}
	_ = t.provider.Shutdown(ctx)
	return nil
}

// ofAll is said of what every replica tells alike.
const ofAll = " All replicas that share a queue tell the same."

// queueMetric is a number of the queue; one series each.
type queueMetric struct {
	name, unit, about string
	of                func(*capture.QueueStatus) float64
}

// queueTotals only grow, while queueGauges go up and down.
var (
	queueTotals = []queueMetric{
		{"turns_delivered", "", "Turns delivered, since the queue was made." + ofAll, func(s *capture.QueueStatus) float64 { return float64(s.Delivered) }},
		{"turns_verified", "", "Turns delivered and seen in the memory, since the queue was made." + ofAll, func(s *capture.QueueStatus) float64 { return float64(s.Verified) }},
		{"turns_dropped", "", "Turns dropped because too many waited, for too long, or by an operator, since the queue was made." + ofAll, func(s *capture.QueueStatus) float64 { return float64(s.Dropped) }},
		{"turns_evicted", "", "Turns that this process dropped because too many waited, or for too long.", func(s *capture.QueueStatus) float64 { return float64(s.Evicted) }},
		{"turns_lost", "", "Turns that the memory lost, and that were sent again." + ofAll, func(s *capture.QueueStatus) float64 { return float64(s.Lost) }},
		{"answers_dropped", "", "Answers that this process gave up, because they were too many at once or too large to be read: their turns are not kept.", func(s *capture.QueueStatus) float64 { return float64(s.GivenUp) }},
		{"earlier_turns_left_out", "", "Turns of histories that this process did not take because too many waited; they are tried again with the next request of their conversation.", func(s *capture.QueueStatus) float64 { return float64(s.LeftOut) }},
		{"turns_not_kept", "", "Turns of people that this process has lost, because data_dir cannot be used and no more can wait in memory, or because memory is off for it.", func(s *capture.QueueStatus) float64 { return float64(s.NotKept) }},
		{"secrets_redacted", "", "Credentials that this process took out of turns before they were kept.", func(s *capture.QueueStatus) float64 { return float64(s.Redacted) }},
	}
	queueGauges = []queueMetric{
		{"turns_pending", "", "Turns not known to be kept." + ofAll, func(s *capture.QueueStatus) float64 { return float64(s.Pending) }},
		{"turns_under_way", "", "Of the pending turns, those that the memory accepted and does not show yet." + ofAll, func(s *capture.QueueStatus) float64 { return float64(s.UnderWay) }},
		{"turns_dead", "", "Turns that the memory refused." + ofAll, func(s *capture.QueueStatus) float64 { return float64(s.Dead) }},
		{"spool_size", "By", "Size of the turns in the spool." + ofAll, func(s *capture.QueueStatus) float64 { return float64(s.Bytes) }},
		{"oldest_turn_age", "s", "Age of the oldest turn that waits." + ofAll, func(s *capture.QueueStatus) float64 { return since(s.Oldest) }},
		{"delivery_failing", "s", "For how long delivery has failed; 0 when it works." + ofAll, func(s *capture.QueueStatus) float64 { return since(s.Failing) }},
		{"turns_waiting_here", "", "Turns that wait in this replica's own spool, because the shared one cannot be reached.", func(s *capture.QueueStatus) float64 { return float64(s.Here) }},
		{"shared_state_down", "s", "For how long Redis cannot be used, because it is down, full or read-only; 0 when it can, or is not needed.", func(s *capture.QueueStatus) float64 { return since(s.SharedDown) }},
		{"turns_in_memory", "", "Turns that wait in memory until data_dir can be written, and end with the process.", func(s *capture.QueueStatus) float64 { return float64(s.InMemory) }},
		{"data_dir_failing", "s", "For how long data_dir cannot be used, so that turns are not kept on disk; 0 when it can.", func(s *capture.QueueStatus) float64 { return since(s.Unkept) }},
		{"delivers", "", "Whether this process delivers turns: of several replicas one does.", func(s *capture.QueueStatus) float64 {
			if s.Delivers {
				return 1
			}
			return 0
		}},
		{"memory_stalled", "s", "For how long the memory has accepted turns and kept none; 0 when it works." + ofAll, func(s *capture.QueueStatus) float64 { return since(s.Stalled) }},
		{"breaker_open", "", "Whether a memory that is down is left alone: 1 it is, 0.5 it is tried, 0 it works." + ofAll, func(s *capture.QueueStatus) float64 {
			return map[string]float64{"open": 1, "half-open": 0.5}[s.Breaker]
		}},
	}
)

// ObserveQueue shows the queue, which is looked at when the metrics are read.
func (t *Telemetry) ObserveQueue(status func() capture.QueueStatus) error {
	m := t.Meter()
	type shown struct {
		queueMetric
		as metric.Float64Observable
	}
	var all []shown
	var instruments []metric.Observable
	show := func(q queueMetric, as metric.Float64Observable, err error) error {
		if err != nil {
			return fmt.Errorf("prepare metrics: %w", err)
		}
		all, instruments = append(all, shown{q, as}), append(instruments, as)
		return nil
	}
	for _, q := range queueTotals {
		c, err := m.Float64ObservableCounter("graphiti_proxy_"+q.name, metric.WithDescription(q.about), metric.WithUnit(q.unit))
		if err := show(q, c, err); err != nil {
			return err
		}
	}
	for _, q := range queueGauges {
		g, err := m.Float64ObservableGauge("graphiti_proxy_"+q.name, metric.WithDescription(q.about), metric.WithUnit(q.unit))
		if err := show(q, g, err); err != nil {
			return err
		}
	}
	_, err := m.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		s := status()
		for _, q := range all {
			o.ObserveFloat64(q.as, q.of(&s))
		}
		return nil
	}, instruments...)
	if err != nil {
		return fmt.Errorf("prepare metrics: %w", err)
	}
	return nil
}

// since is how long ago a moment is; 0 when there is none.
func since(t *time.Time) float64 {
	if t == nil {
		return 0
	}
	return time.Since(*t).Seconds()
}
