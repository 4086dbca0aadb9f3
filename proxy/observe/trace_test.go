package observe

import (
	"log/slog"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/graphiti-proxy/graphiti-proxy/inject"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
)

// TestNoTraceAllocatesOnlyTheRecord checks that a request without a trace allocates nothing but
// its record.
func TestNoTraceAllocatesOnlyTheRecord(t *testing.T) {
	o, err := New(noop.Meter{}, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	h := &fasthttp.RequestHeader{}
	p := &inject.Plan{Searched: make([]inject.Searched, 3)}
	n := testing.AllocsPerRun(100, func() {
		r := o.Begin(h, "/v1/chat/completions", time.Time{})
		r.spans.planned(p)
		r.Send(h, "host", "openai", []byte("m"))
		read := r.Read()
		if _, replaced := r.Context(); replaced || r.Parent() != "" {
			t.Error("a turn of nobody's trace")
		}
		r.Unread()
		read.Report(&dialect.Answer{})
		r.whole()
	})
	if n > 1 {
		t.Errorf("%v allocations", n)
	}
}
