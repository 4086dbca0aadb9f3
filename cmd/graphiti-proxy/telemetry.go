package main

import (
	"context"
	"fmt"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	otelprom "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/graphiti-proxy/graphiti-proxy/capture"
)

// telemetry collects metrics and shows them to Prometheus.
type telemetry struct {
	provider *sdkmetric.MeterProvider
	registry *prometheus.Registry
}

func newTelemetry() (*telemetry, error) {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	exporter, err := otelprom.New(otelprom.WithRegisterer(registry), otelprom.WithoutScopeInfo(), otelprom.WithoutTargetInfo())
	if err != nil {
		return nil, fmt.Errorf("prepare metrics: %w", err)
	}
	return &telemetry{sdkmetric.NewMeterProvider(sdkmetric.WithReader(exporter)), registry}, nil
}

func (t *telemetry) meter() metric.Meter {
	return t.provider.Meter("github.com/graphiti-proxy/graphiti-proxy")
}

func (t *telemetry) handler() http.Handler {
	return promhttp.HandlerFor(t.registry, promhttp.HandlerOpts{})
}

func (t *telemetry) shutdown(ctx context.Context) error { return t.provider.Shutdown(ctx) }

// observeQueue shows the queue's counts, asked for when they are read.
func (t *telemetry) observeQueue(status func() capture.QueueStatus) error {
	m := t.meter()
	for _, g := range []struct {
		name, about string
		of          func(capture.QueueStatus) int
	}{
		{"pending", "Turns that wait to be delivered.", func(s capture.QueueStatus) int { return s.Pending }},
		{"delivered", "Turns delivered since the start.", func(s capture.QueueStatus) int { return s.Delivered }},
		{"verified", "Turns delivered and known to be held.", func(s capture.QueueStatus) int { return s.Verified }},
		{"dropped", "Turns dropped because too many waited.", func(s capture.QueueStatus) int { return s.Dropped }},
		{"dead", "Turns that the memory refused.", func(s capture.QueueStatus) int { return s.Dead }},
	} {
		_, err := m.Int64ObservableGauge("graphiti_proxy_turns_"+g.name, metric.WithDescription(g.about),
			metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
				o.Observe(int64(g.of(status())))
				return nil
			}))
		if err != nil {
			return fmt.Errorf("prepare metrics: %w", err)
		}
	}
	return nil
}
