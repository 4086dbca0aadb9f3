package observe

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
	"github.com/graphiti-proxy/graphiti-proxy/internal/helptest"
)

var must = helptest.Must

// TestCallerOfRequest checks how the line, the list and the span of a request name its caller.
func TestCallerOfRequest(t *testing.T) {
	proven, credential := graphiti.Who{User: "user:mira"}, graphiti.Who{User: "user:mira"}
	proven.SetPerson()
	credential.SetCredentials("", "aa")
	hash := graphiti.PersonHash("user:mira")
	for _, tc := range []struct {
		name           string
		who            graphiti.Who
		hashes         bool
		person, tenant string
		attribute      string
	}{
		{"one memory", graphiti.Who{User: "user:mira"}, false, "", "", ""},
		{"a proven person", proven, false, "user:mira", proven.Tenant[:12], "user.id"},
		{"a proven person, hashed", proven, true, hash, proven.Tenant[:12], "user.hash"},
		{"a name that the credential does not prove", credential, false, "", credential.Tenant[:12], ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var log bytes.Buffer
			spans := tracetest.NewSpanRecorder()
			tracer := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)).Tracer("t")
			o, err := New(sdkmetric.NewMeterProvider().Meter("t"), tracer, slog.New(slog.NewTextHandler(&log, nil)))
			must(t, err)
			o.LogRequests(true, tc.hashes)
			pass(o, tc.who)
			p := o.Passed(0, 1, "")[0]
			if p.Person != tc.person || p.Tenant != tc.tenant {
				t.Errorf("the list has %q of %q, want %q of %q", p.Person, p.Tenant, tc.person, tc.tenant)
			}
			line := log.String()
			for key, want := range map[string]string{"person": tc.person, "tenant": tc.tenant} {
				if got := strings.Contains(line, " "+key+"="+want); got != (want != "") || want == "" && strings.Contains(line, key+"=") {
					t.Errorf("the line %s: want %s=%s", line, key, want)
				}
			}
			attributes := fmt.Sprint(spans.Ended()[0].Attributes())
			if all := line + attributes; tc.person != "user:mira" && strings.Contains(all, "mira") {
				t.Errorf("%s has the name", all)
			}
			if tc.attribute != "" && !strings.Contains(attributes, tc.attribute) || !strings.Contains(attributes, "graphiti_proxy.memory.added") || !strings.Contains(attributes, "graphiti_proxy.client") {
				t.Errorf("the span has %s", attributes)
			}
		})
	}
}

// TestTokensByModel checks that tokens are counted by upstream, model and tenant, and that further
// models share one series.
func TestTokensByModel(t *testing.T) {
	reader := sdkmetric.NewManualReader()
	o, err := New(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)).Meter("t"), nil, slog.New(slog.DiscardHandler))
	must(t, err)
	ask := func(model string, u dialect.Usage) {
		h := headOf("codex/1", "/v1/chat/completions")
		r := o.Begin(h, "", time.Now())
		r.Did(h, LogEntry{API: "chat", To: "openai", Serves: "openai", Model: []byte(model)}, &plan)
		a := r.Read()
		a.Report(&dialect.Answer{Usage: u})
		r.End(h, 200, nil)
	}
	ask("gpt-5", dialect.Usage{Input: 100, Cached: 40, Output: 7})
	ask("gpt-5", dialect.Usage{Input: 10, Output: 1})
	ask("sk-proj-4kT9wQz7LmX2vBn8JcY5hDf3GsP6aEu1", dialect.Usage{Input: 1})
	for i := range maxSeries + 50 {
		ask(fmt.Sprint("m", i), dialect.Usage{Input: 1, Cached: 1, Output: 1})
	}
	var got metricdata.ResourceMetrics
	must(t, reader.Collect(context.Background(), &got))
	names := make(map[string]bool)
	for _, m := range got.ScopeMetrics[0].Metrics {
		names[m.Name] = true
		sums, ok := m.Data.(metricdata.Sum[int64])
		want, isTokens := map[string]int64{"graphiti_proxy_input_tokens": 110, "graphiti_proxy_cached_input_tokens": 40, "graphiti_proxy_output_tokens": 8}[m.Name]
		if !ok || !isTokens {
			continue
		}
		if n := len(sums.DataPoints); n > maxSeries+1 {
			t.Errorf("%s has %d series", m.Name, n)
		}
		var of, rest int64
		for _, p := range sums.DataPoints {
			switch model, _ := p.Attributes.Value("model"); {
			case model.AsString() == "gpt-5":
				of = p.Value
			case model.AsString() == dialect.Other:
				rest = p.Value
			case strings.Contains(model.AsString(), "4kT9"):
				t.Errorf("%s has a key in a label", m.Name)
			}
		}
		if of != want || rest != 52 {
			t.Errorf("%s: %d of gpt-5 and %d of further models, want %d and 52", m.Name, of, rest, want)
		}
	}
	for _, name := range []string{"gen_ai.client.token.usage", "gen_ai.client.operation.duration", "graphiti_proxy_output_tokens"} {
		if !names[name] {
			t.Errorf("there is no %s", name)
		}
	}
}

// TestClientsOf_Bound: clients beyond the bound share one entry.
func TestClientsOf_Bound(t *testing.T) {
	t.Parallel()
	var c clients
	for i := range 10 * maxSeen {
		c.of(version{fmt.Sprint("client", i), ""})
	}
	if len(c.seen) > maxSeen+1 {
		t.Errorf("got %d entries, want at most %d", len(c.seen), maxSeen+1)
	}
}

func TestLoggedPath(t *testing.T) {
	secret := func(parts ...string) string { return strings.Join(parts, "") } // so that no scanner finds one here
	for target, want := range map[string]string{
		"/v1/chat/completions":                      "/v1/chat/completions",
		"/v1/models?key=abc":                        "/v1/models",
		"/v1/models#key":                            "/v1/models",
		"/openai/deployments/gpt-4o-mini/responses": "/openai/deployments/gpt-4o-mini/responses",
		"/v1beta/models/gemini-2.5-flash-preview-05-20:streamGenerateContent": "/v1beta/models/gemini-2.5-flash-preview-05-20:streamGenerateContent",
		"/v1/models/meta-llama/Llama-4-Maverick-17B-128E-Instruct-FP8":        "/v1/models/meta-llama/Llama-4-Maverick-17B-128E-Instruct-FP8",
		"/v1/models/claude-3-5-sonnet@20240620":                               "/v1/models/claude-3-5-sonnet@20240620",
		"/" + secret("sk", "-abcdef123456") + "/v1/x":                         "/***/v1/x",
		"/" + secret("sk", "-proj-AbC_dEf-123") + "/v1/x":                     "/***/v1/x",
		"/" + secret("AI", "zaSyA1234567") + "/v1/x":                          "/***/v1/x",
		"/" + secret("%73", "k-abcdef123456") + "/v1/x":                       "/***/v1/x",
		"/v1/key=" + secret("sk", "-abcdef123456") + ";x":                     "/v1/***",
		"/0123456789abcdef0123456789abcdef01234567/v1/x":                      "/***/v1/x",
		"/9f86d081-884c-4d63-a5f4-0d1a2b3c4d5e/v1/x":                          "/***/v1/x",
		"/aB3_dE6-gH9_jK2-mN5_pQ8-sT1_vW4/v1/x":                               "/***/v1/x",
		"/" + strings.Repeat("abcdefgh", 4) + "/v1/x":                         "/***/v1/x",
		"/a1b2c3d4e5f6g7h8i9j0/v1/x":                                          "/***/v1/x",
		"http://user:password@host/v1/x?key=abc":                              "/v1/x",
		"//user:password@host/v1/x":                                           "//***/v1/x",
		"user:password@host:443":                                              "***",
		"*":                                                                   "*",
	} {
		if got := loggedPath([]byte(target)); got != want {
			t.Errorf("%s: %s, want %s", target, got, want)
		}
	}
}
