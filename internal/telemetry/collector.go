package telemetry

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/graphiti-proxy/graphiti-proxy/capture/deliver"
)

// CollectorGrace limits the wait for a collector during shutdown.
const CollectorGrace = 2 * time.Second

// collector holds the exporters for an OpenTelemetry collector.
type collector struct {
	resource *resource.Resource
	metrics  sdkmetric.Reader         // nil disables metrics
	spans    *sdktrace.TracerProvider // nil disables spans
}

// standard returns the value of one of OpenTelemetry's own settings, which the
// exporters also read by themselves
// (https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/).
func standard(name string) string {
	return strings.ToLower(strings.TrimSpace(os.Getenv("OTEL_" + name)))
}

// newCollector returns the exporters for the configuration and environment. Without an
// endpoint there are none.
func newCollector(o Options) (c collector, err error) {
	everything := o.Endpoint != "" || standard("EXPORTER_OTLP_ENDPOINT") != ""
	traces := o.Traces && standard("TRACES_EXPORTER") != "none" && (everything || standard("EXPORTER_OTLP_TRACES_ENDPOINT") != "")
	metrics := o.Metrics && standard("METRICS_EXPORTER") != "none" && standard("METRICS_EXPORTER") != "prometheus" &&
		(everything || standard("EXPORTER_OTLP_METRICS_ENDPOINT") != "")
	if standard("SDK_DISABLED") == "true" || !traces && !metrics {
		return c, nil
	}
	for _, name := range []string{"EXPORTER_OTLP_PROTOCOL", "EXPORTER_OTLP_TRACES_PROTOCOL", "EXPORTER_OTLP_METRICS_PROTOCOL"} {
		if p := standard(name); p != "" && p != "http/protobuf" {
			return c, fmt.Errorf("OTEL_%s: %q is not spoken; write http/protobuf, and the collector's port for it, 4318 as a rule", name, p)
		}
	}
	ctx := context.Background()
	c.resource, err = resource.New(ctx, resource.WithAttributes(attribute.String("service.name", "graphiti-proxy"), attribute.String("service.version", o.Version),
		attribute.String("service.instance.id", o.Instance)),
		resource.WithFromEnv(), resource.WithTelemetrySDK())
	if err != nil {
		return c, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	// The library would print export errors; log them instead.
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { o.Log.Warn("export telemetry failed", "error", err) }))
	base := strings.TrimSuffix(o.Endpoint, "/")
	if traces {
		to := []otlptracehttp.Option{otlptracehttp.WithProxy(unredirected)}
		if base != "" {
			to = append(to, otlptracehttp.WithEndpointURL(base+"/v1/traces"))
		}
		exporter, err := otlptracehttp.New(ctx, to...)
		if err != nil {
			return c, fmt.Errorf("otel.endpoint: %w", err)
		}
		options := []sdktrace.TracerProviderOption{sdktrace.WithBatcher(exporter), sdktrace.WithResource(c.resource)}
		if standard("TRACES_SAMPLER") == "" {
			options = append(options, sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.TraceIDRatioBased(o.Sample))))
		}
		c.spans = sdktrace.NewTracerProvider(options...)
	}
	if metrics {
		to := []otlpmetrichttp.Option{otlpmetrichttp.WithProxy(unredirected)}
		if base != "" {
			to = append(to, otlpmetrichttp.WithEndpointURL(base+"/v1/metrics"))
		}
		exporter, err := otlpmetrichttp.New(ctx, to...)
		if err != nil {
			return c, fmt.Errorf("otel.endpoint: %w", err)
		}
		c.metrics = sdkmetric.NewPeriodicReader(exporter)
	}
	return c, nil
}

// unredirected returns the proxy for a request, and refuses redirects: consent is for one address.
// The exporters would ignore their other settings with a client that has a CheckRedirect.
func unredirected(r *http.Request) (*url.URL, error) {
	if r.Response != nil {
		return nil, errors.New("the collector answered with a redirect: set otel.endpoint to its final address")
	}
	return http.ProxyFromEnvironment(r)
}

// Deliveries returns a function that records a delivery as a span, in the trace of the
// turn's request, which another process may have served long ago.
func Deliveries(tracer trace.Tracer) func(deliver.Delivery) {
	if tracer == nil {
		return nil
	}
	return func(d deliver.Delivery) {
		ctx := propagation.TraceContext{}.Extract(context.Background(), propagation.MapCarrier{"traceparent": d.Trace})
		sum := sha256.Sum256([]byte(d.Group))
		_, span := tracer.Start(ctx, "deliver", trace.WithTimestamp(d.Began), trace.WithSpanKind(trace.SpanKindProducer), trace.WithAttributes(
			attribute.String("graphiti_proxy.group", hex.EncodeToString(sum[:8])), attribute.Bool("graphiti_proxy.verified", d.Verified)))
		if d.Err != nil {
			span.SetStatus(codes.Error, d.Err.Error())
		}
		span.End()
	}
}
