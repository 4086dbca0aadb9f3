// Package telemetry owns the proxy's signals for operators: metrics for Prometheus,
// metrics and traces for an OpenTelemetry collector, and the rate limit of repeated
// warnings.
package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"runtime/debug"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel/attribute"
	otelprom "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/graphiti-proxy/graphiti-proxy/capture"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// Options configures telemetry, together with the standard OTEL_* variables.
type Options struct {
	Endpoint string // of an OpenTelemetry collector, or ""
	Traces   bool
	Metrics  bool
	Sample   float64 // share of requests with traces

	Version  string
	Instance string // readable name of this process
	Log      *slog.Logger
}

// Telemetry collects metrics, serves them to Prometheus, and sends them and spans to a
// collector if one is configured.
type Telemetry struct {
	provider *sdkmetric.MeterProvider
	registry *prometheus.Registry
	spans    *sdktrace.TracerProvider // nil disables tracing
	version  string
}

// New prepares the metrics and the exporters.
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

// Tracer returns the tracer, or nil if tracing is off.
func (t *Telemetry) Tracer() trace.Tracer {
	if t.spans == nil {
		return nil
	}
	return t.spans.Tracer("github.com/graphiti-proxy/graphiti-proxy", trace.WithInstrumentationVersion(t.version))
}

// Meter returns the meter for the proxy's metrics.
func (t *Telemetry) Meter() metric.Meter {
	return t.provider.Meter("github.com/graphiti-proxy/graphiti-proxy")
}

// Handler serves the metrics to Prometheus.
func (t *Telemetry) Handler() http.Handler {
	return promhttp.HandlerFor(t.registry, promhttp.HandlerOpts{})
}

// Shutdown flushes pending telemetry within CollectorGrace.
func (t *Telemetry) Shutdown(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, CollectorGrace)
	defer cancel()
	if t.spans != nil {
		_ = t.spans.Shutdown(ctx) // an unreachable collector is not an error
	}
	_ = t.provider.Shutdown(ctx)
	return nil
}

// ofAll ends the help of metrics with the same value on every replica.
const ofAll = " Shared by replicas."

// queueMetric is one metric of the queue, with one series.
type queueMetric struct {
	name, unit, about string
	of                func(*capture.QueueStatus) float64
}

// queueTotals are counters, and queueGauges are gauges.
var (
	queueTotals = []queueMetric{
		{"turns_delivered", "", "Turns delivered since the queue was created." + ofAll, func(s *capture.QueueStatus) float64 { return float64(s.Delivered) }},
		{"turns_verified", "", "Turns delivered and verified (listed by the memory) since the queue was created." + ofAll, func(s *capture.QueueStatus) float64 { return float64(s.Verified) }},
		{"turns_dropped", "", "Turns that an operator dropped since the queue was created." + ofAll, func(s *capture.QueueStatus) float64 { return float64(s.Dropped) }},
		{"turns_lost", "", "Turns that the memory accepted and lost; they were sent again." + ofAll, func(s *capture.QueueStatus) float64 { return float64(s.Lost) }},
		{"answers_dropped", "", "Answers skipped because of their size or number; their turns are not stored.", func(s *capture.QueueStatus) float64 { return float64(s.GivenUp) }},
		{"earlier_turns_left_out", "", "Earlier turns of a conversation that were not stored because the queue was full.", func(s *capture.QueueStatus) float64 { return float64(s.LeftOut) }},
		{"turns_not_kept", "", "Turns lost because data_dir was unusable, and RAM was full or memory was off.", func(s *capture.QueueStatus) float64 { return float64(s.NotKept) }},
		{"distil_calls", "", "Calls to the model that distils facts.", func(s *capture.QueueStatus) float64 { return float64(s.Distilled.Calls) }},
		{"distil_failures", "", "Of those, calls without a usable answer.", func(s *capture.QueueStatus) float64 { return float64(s.Distilled.Failed) }},
		{"distil_tokens", "", "Tokens spent on facts, as the model's server reports them, or estimated.", func(s *capture.QueueStatus) float64 { return float64(s.Distilled.Tokens) }},
		{"facts_distilled", "", "Facts stored from a model.", func(s *capture.QueueStatus) float64 { return float64(s.Distilled.Facts) }},
		{"facts_refused", "", "Facts of a model that were not accepted.", func(s *capture.QueueStatus) float64 { return float64(s.Distilled.Refused) }},
		{"secrets_redacted", "", "Credentials removed from turns before they were stored.", func(s *capture.QueueStatus) float64 { return float64(s.Redacted) }},
	}
	queueGauges = []queueMetric{
		{"turns_pending", "", "Turns that wait for delivery or for its verification." + ofAll, func(s *capture.QueueStatus) float64 { return float64(s.Pending) }},
		{"turns_under_way", "", "Pending turns that the memory has accepted and not listed yet." + ofAll, func(s *capture.QueueStatus) float64 { return float64(s.UnderWay) }},
		{"turns_dead", "", "Dead letters: turns that the memory rejected." + ofAll, func(s *capture.QueueStatus) float64 { return float64(s.Dead) }},
		{"withdrawn", "", "Forgotten messages, conversations and groups that may still be in Graphiti." + ofAll, func(s *capture.QueueStatus) float64 { return float64(s.Withdrawn) }},
		{"oldest_turn_age", "s", "Age of the oldest waiting turn." + ofAll, func(s *capture.QueueStatus) float64 { return since(s.Oldest) }},
		{"delivery_failing", "s", "Time since delivery began to fail; 0 while it works." + ofAll, func(s *capture.QueueStatus) float64 { return since(s.Failing) }},
		{"turns_waiting_here", "", "Turns in data_dir of this replica because Postgres is unusable.", func(s *capture.QueueStatus) float64 { return float64(s.Here) }},
		{"shared_state_down", "s", "Time since Postgres became unusable; 0 while it works, or without Postgres.", func(s *capture.QueueStatus) float64 { return since(s.SharedDown) }},
		{"turns_in_memory", "", "Turns in RAM until data_dir is writable; they are lost when the process ends.", func(s *capture.QueueStatus) float64 { return float64(s.InMemory) }},
		{"data_dir_failing", "s", "Time since data_dir became unusable, so that turns are not on disk; 0 while it works.", func(s *capture.QueueStatus) float64 { return since(s.Unkept) }},
		{"delivers", "", "1: this process delivers turns; of several replicas one does.", func(s *capture.QueueStatus) float64 {
			if s.Delivers {
				return 1
			}
			return 0
		}},
		{"memory_stalled", "s", "Time since the memory began to accept turns without storing any; 0 while it stores them." + ofAll, func(s *capture.QueueStatus) float64 { return since(s.Stalled) }},
	}
)

// ObserveQueue registers the queue's metrics, which call status at each scrape.
func (t *Telemetry) ObserveQueue(status func() capture.QueueStatus) error {
	m, all := t.Meter(), slices.Concat(queueTotals, queueGauges)
	shown, instruments := make([]metric.Float64Observable, len(all)), make([]metric.Observable, len(all))
	for i, q := range all {
		var err error
		if i < len(queueTotals) {
			shown[i], err = m.Float64ObservableCounter("graphiti_proxy_"+q.name, metric.WithDescription(q.about), metric.WithUnit(q.unit))
		} else {
			shown[i], err = m.Float64ObservableGauge("graphiti_proxy_"+q.name, metric.WithDescription(q.about), metric.WithUnit(q.unit))
		}
		if err != nil {
			return fmt.Errorf("prepare metrics: %w", err)
		}
		instruments[i] = shown[i]
	}
	_, err := m.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		s := status()
		for i, q := range all {
			o.ObserveFloat64(shown[i], q.of(&s))
		}
		return nil
	}, instruments...)
	if err != nil {
		return fmt.Errorf("prepare metrics: %w", err)
	}
	return nil
}

// ObserveMemory registers the metrics of the last check of a memory service. check returns
// their values by name, at each scrape.
func (t *Telemetry) ObserveMemory(check func() map[string]bool) error {
	m := t.Meter()
	for name, about := range map[string]string{
		"graphiti_healthy": "Last health check of Graphiti: 1 healthy, 0 unhealthy.",
		"search_working":   "Last test search in Graphiti: 1 success, 0 failure.",
	} {
		_, err := m.Int64ObservableGauge("graphiti_proxy_"+name, metric.WithDescription(about), metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			if ok, known := check()[name]; known {
				o.Observe(map[bool]int64{true: 1}[ok])
			}
			return nil
		}))
		if err != nil {
			return fmt.Errorf("prepare metrics: %w", err)
		}
	}
	return nil
}

// ObserveStored registers the metrics of the memory's extent, which call stored at each scrape.
func (t *Telemetry) ObserveStored(stored func(context.Context) (graphiti.Stored, error)) error {
	m := t.Meter()
	rows, failed := m.Int64ObservableGauge("graphiti_proxy_memory_rows", metric.WithDescription("Messages and facts, by kind and state."+ofAll))
	size, err := m.Int64ObservableGauge("graphiti_proxy_memory_size", metric.WithUnit("By"), metric.WithDescription("Size of the databases in data_dir, and of the database in Postgres."))
	arms, none := m.Int64ObservableGauge("graphiti_proxy_proof_conversations", metric.WithDescription("Conversations in the comparison of proof mode, by arm, or left out, with the reason."+ofAll))
	if err = errors.Join(failed, err, none); err == nil {
		_, err = m.RegisterCallback(func(ctx context.Context, o metric.Observer) error {
			s, err := stored(ctx)
			if err != nil {
				return nil //nolint:nilerr // status reports the fault
			}
			for _, r := range []struct {
				kind, state string
				n           int64
			}{{"message", "stored", s.Messages}, {"message", "waiting", s.Waiting}, {"fact", "valid", s.Facts}, {"fact", "ended", s.Ended}} {
				o.ObserveInt64(rows, r.n, metric.WithAttributes(attribute.String("kind", r.kind), attribute.String("state", r.state)))
			}
			o.ObserveInt64(size, s.Bytes)
			for arm, n := range s.Arms {
				o.ObserveInt64(arms, int64(n), metric.WithAttributes(attribute.String("arm", arm)))
			}
			return nil
		}, rows, size, arms)
	}
	if err != nil {
		return fmt.Errorf("prepare metrics: %w", err)
	}
	return nil
}

// CountCalls returns a function that counts calls to a memory service.
func (t *Telemetry) CountCalls() (func(call, outcome string), error) {
	c, err := t.Meter().Int64Counter("graphiti_proxy_memory_calls", metric.WithDescription(
		"Calls to Graphiti, by call and outcome: ok; refused: status 3xx or 4xx; failed: status 5xx, or a tool's failure; timeout; canceled; unreachable; unreadable."))
	if err != nil {
		return nil, fmt.Errorf("prepare metrics: %w", err)
	}
	return func(call, outcome string) {
		c.Add(context.Background(), 1, metric.WithAttributes(attribute.String("call", call), attribute.String("outcome", outcome)))
	}, nil
}

// since returns the seconds since a time, or 0 for nil.
func since(t *time.Time) float64 {
	if t == nil {
		return 0
	}
	return time.Since(*t).Seconds()
}

// Version returns the module's version, or the commit that was built.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	v := info.Main.Version
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && (v == "" || v == "(devel)") {
			v = "devel+" + s.Value[:min(12, len(s.Value))]
		}
	}
	return v
}

// ProcessName returns a name of this process, for people.
func ProcessName() string {
	name, err := os.Hostname()
	if err != nil {
		name = "a replica"
	}
	return fmt.Sprintf("%s/%d", name, os.Getpid())
}
