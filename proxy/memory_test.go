package proxy

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/valyala/fasthttp"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/graphiti-proxy/graphiti-proxy/capture"
	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/capture/standing"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/inject"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect/chat"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect/messages"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/identity"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/observe"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/proxytest"
)

// withDefaults returns the memory with its nil services replaced by services that do nothing.
func (m Memory) withDefaults() *Memory {
	m.Sessions = cmp.Or[Sessions](m.Sessions, noService{})
	m.Turns = cmp.Or[Turns](m.Turns, noService{})
	m.Doubts = cmp.Or[Doubts](m.Doubts, noService{})
	m.Standing = cmp.Or[Standing](m.Standing, noService{})
	m.Tenants = cmp.Or[Tenants](m.Tenants, noService{})
	m.Generations = cmp.Or[Generations](m.Generations, noService{})
	m.Figures = cmp.Or[Statistics](m.Figures, noService{})
	return &m
}

// planning returns the services of a planner, with nil ones replaced by services that do nothing.
func planning(s inject.Services) inject.Services {
	s.Search = cmp.Or[graphiti.Searcher](s.Search, noRecall{})
	s.Decisions = cmp.Or[inject.Decisions](s.Decisions, noRecall{})
	s.Snapshots, s.Opening = noRecall{}, noRecall{}
	s.Redact = func(text string, _ time.Time) (string, bool) { return text, true }
	s.Decides = func(context.Context, string) bool { return false }
	s.Now, s.Log = time.Now, slog.New(slog.DiscardHandler)
	return s
}

// noRecall implements services of a planner that do nothing.
type noRecall struct{}

func (noRecall) Search(context.Context, []string, string, int) ([]graphiti.Fact, error) {
	return nil, nil
}
func (noRecall) Keep(_ context.Context, _ [16]byte, d inject.Decision, _ ...string) (*inject.Decision, error) {
	return &d, nil
}
func (noRecall) Drop(context.Context, [16]byte, inject.Decision) error { return nil }
func (noRecall) Lookup(_ context.Context, _ int64, keys [][16]byte) ([]*inject.Decision, error) {
	return make([]*inject.Decision, len(keys)), nil
}
func (noRecall) Load(context.Context, string) ([]byte, error)                    { return nil, nil }
func (noRecall) Save(context.Context, string, []byte, int64, ...string) error    { return nil }
func (noRecall) Standing(context.Context, graphiti.Who) ([]graphiti.Fact, error) { return nil, nil }

// noService implements services that do nothing.
type noService struct{}

func (noService) Pending(context.Context, ...[16]byte) (string, bool)    { return "", false }
func (noService) SetPending(context.Context, [16]byte, string)           {}
func (noService) EndPending([16]byte)                                    {}
func (noService) Find(context.Context, [][16]byte) (string, bool, error) { return "", false, nil }
func (noService) Put(context.Context, string, ...[16]byte) error         { return nil }
func (noService) PutAsync([16]byte, string)                              {}
func (noService) Add(context.Context, ledger.Turn) error                 { return nil }
func (noService) Holds(string) int                                       { return 0 }

func (noService) Release(context.Context, *capture.Twin)     {}
func (noService) GoesOn(string, []dialect.Fingerprint, bool) {}
func (noService) Twin(*capture.Twin, bool)                   {}
func (noService) Hold(context.Context, ledger.Turn, *capture.Doubt) (graphiti.Fate, error) {
	return graphiti.Fate{}, nil
}
func (noService) EndTurn(context.Context, graphiti.Who, string, []graphiti.Target, int64) error {
	return nil
}
func (noService) Begin(string)                                         {}
func (noService) CutOff(context.Context, ledger.Turn) error            { return nil }
func (noService) Kept(string, []graphiti.Target) bool                  { return false }
func (noService) Known([16]byte) bool                                  { return false }
func (noService) Backfill(capture.History)                             {}
func (noService) Full(string) string                                   { return "" }
func (noService) Apply(context.Context, standing.Message) inject.Heard { return inject.Heard{} }
func (noService) Accepted(context.Context, string) bool                { return true }
func (noService) Accept(string)                                        {}
func (noService) Now() int64                                           { return 0 }
func (noService) Asked(graphiti.Who, inject.Plan)                      {}
func (noService) Used(graphiti.Who, string, *graphiti.Usage)           {}
func (noService) Lost(graphiti.Who, string)                            {}

// planner is a Planner that calls plan.
type planner struct {
	plan func(ctx context.Context) inject.Plan
}

func (p planner) Plan(ctx context.Context, _ *dialect.Conversation, _ []dialect.Fingerprint, _ graphiti.Who, _ bool, _ inject.Mode) inject.Plan {
	return p.plan(ctx)
}
func (planner) Withdraw(inject.Unanswered)                   {}
func (planner) Writes(graphiti.Who) []graphiti.Target        { return nil }
func (planner) Read(*inject.Round) (d inject.Done)           { return d }
func (planner) Worked(graphiti.Who, int64, *inject.Done)     {}
func (planner) Remember(graphiti.Who, int64, inject.Ended)   {}
func (planner) Prefetch(graphiti.Who, int64, string, string) {}

// hanging is a Sessions whose lookups block until their context ends.
type hanging struct{}

func (hanging) Pending(ctx context.Context, _ ...[16]byte) (string, bool) {
	<-ctx.Done()
	return "", false
}
func (hanging) SetPending(ctx context.Context, _ [16]byte, _ string) { <-ctx.Done() }
func (hanging) EndPending([16]byte)                                  {}
func (hanging) Find(ctx context.Context, _ [][16]byte) (string, bool, error) {
	<-ctx.Done()
	return "", false, ctx.Err()
}
func (hanging) Put(context.Context, string, ...[16]byte) error { return nil }
func (hanging) PutAsync([16]byte, string)                      {}

// TestLookingForASessionTakesNoLongerThanRecallMay checks that the session lookups and the
// plan of a request share one deadline.
func TestLookingForASessionTakesNoLongerThanRecallMay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, err := observe.New(noop.Meter{}, nil, slog.New(slog.DiscardHandler))
		must(t, err)
		s := &Server{decider: idle(), observer: in}
		s.routes.Store(&routes{})
		var until time.Time
		c := posted(`{"messages":[{"role":"user","content":"one"},{"role":"assistant","content":"a long answer that could tell a conversation"},{"role":"user","content":"two"}]}`)
		c.memory = Memory{MemorySettings: MemorySettings{Identity: identity.Settings{Owner: "user:o"}, Recall: true, Timeout: 400 * time.Millisecond}, Services: Services{Planner: planner{func(ctx context.Context) inject.Plan { until, _ = ctx.Deadline(); return inject.Plan{} }}, Sessions: hanging{}}}.withDefaults()
		start := time.Now()
		d := s.decide(c)
		if took := time.Since(start); took != 400*time.Millisecond {
			t.Errorf("took %v", took)
		}
		if took := d.plan.Outcome.Took; took != 400*time.Millisecond {
			t.Errorf("the client is told %v", took)
		}
		if until.Sub(start) != 400*time.Millisecond {
			t.Errorf("planning may take until %v after the start", until.Sub(start))
		}
	})
}

// brokenTurns is a Turns that panics.
type brokenTurns struct {
	noService
	about string
}

func (b brokenTurns) Kept(string, []graphiti.Target) bool { panic(fmt.Errorf("about %s", b.about)) }

// TestBugInMemoryIsNotNoticed checks that the client gets its answer even if the memory
// panics, and that the log does not quote the panic.
func TestBugInMemoryIsNotNoticed(t *testing.T) {
	model, err := proxytest.Start()
	must(t, err)
	defer model.Close()
	const quoted = "the word is Zanzibar"
	turn := func(context.Context) inject.Plan {
		return inject.Plan{Turn: "t", Write: []graphiti.Target{{Scope: graphiti.ScopeUser, Group: "user_o"}}}
	}
	for name, m := range map[string]Services{
		"planning": {Planner: planner{func(context.Context) inject.Plan { panic(quoted) }}},
		"watching": {Planner: planner{turn}, Turns: brokenTurns{about: quoted}},
		"no parts": {Planner: planner{turn}},
	} {
		var mu sync.Mutex
		var log strings.Builder
		_, url := start(t, model.URL(), func(o *Options) {
			o.Memory = Memory{MemorySettings: MemorySettings{Identity: identity.Settings{Owner: "user:o"}, Recall: true, Ingest: true, Timeout: time.Minute}, Services: m}
			o.Log = slog.New(slog.NewTextHandler(locked{&mu, &log}, nil))
		})
		req, _ := http.NewRequest(http.MethodPost, url+chatPath, strings.NewReader(`{"model":"m","messages":[{"role":"user","content":"hello"}]}`))
		req.Header.Set("X-Graphiti-Session", "s")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		b, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusOK || !strings.Contains(string(b), "choices") {
			t.Errorf("%s: got %s %s (%v), want no error, Status 200, \"choices\" in it", name, resp.Status, b, err)
		}
		mu.Lock()
		if !strings.Contains(log.String(), "bug was contained") || strings.Contains(log.String(), "Zanzibar") {
			t.Errorf("%s: logged %s", name, log.String())
		}
		mu.Unlock()
	}
}

// TestReleaseClearsBuffers checks that release clears the buffers of a
// request, because the next request reuses them.
func TestReleaseClearsBuffers(t *testing.T) {
	c := &call{}
	c.body.Bytes = []byte(`{"model":"secret-model","user":"alice","messages":[{"role":"user","content":"hello"}]}`)
	if !(chat.Dialect{}).Parse(c.body.Bytes, &c.buffers.conv) {
		t.Fatal("not read")
	}
	c.held, c.memory = &heldEnd{}, &Memory{}
	c.release()
	if c.buffers.conv.Model != nil || c.buffers.conv.Field(dialect.FieldUser) != nil || len(c.buffers.conv.Messages) > 0 || c.held != nil || c.memory != nil {
		t.Errorf("got %q %q %d, want none of it", c.buffers.conv.Model, c.buffers.conv.Field(dialect.FieldUser), len(c.buffers.conv.Messages))
	}
}

type locked struct {
	mu *sync.Mutex
	w  io.Writer
}

func (l locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

// TestAbsoluteTargetGoesWhereItsPathSays checks that an absolute target is routed by its
// path.
func TestAbsoluteTargetGoesWhereItsPathSays(t *testing.T) {
	s, _ := start(t, "http://openai.example", func(o *Options) { o.Routes.Upstreams["anthropic"] = "http://anthropic.example" })
	for _, target := range []string{"/v1/messages", "http://proxy/v1/messages", "http://proxy/v1/messages?beta=true"} {
		var h fasthttp.RequestHeader
		h.SetMethod(http.MethodPost)
		h.SetRequestURI(target)
		if r := s.match(&h); r.upstream.Host != "anthropic.example" || r.Dialect == nil {
			t.Errorf("%s: to %s, %v", target, r.upstream.Host, r.Dialect)
		}
	}
}

// TestRelaxInItsPlace checks that Among adds its insert in the order of the body, without
// changing the other inserts.
func TestRelaxInItsPlace(t *testing.T) {
	body := `{"messages":[{"role":"user","content":"a"}],"thinking":{"type":"enabled"},"x":"b"}`
	first, last := strings.Index(body, "a\"}"), strings.Index(body, "b\"")
	blocks := []dialect.Insert{{At: first}, {At: last}}
	inserts, relax := messages.Dialect{}.Info().Relax.Among(blocks, []byte(body))
	if relax == nil || len(inserts) != 3 || inserts[0].At != first || inserts[2].At != last || len(inserts[1].Text) == 0 || blocks[1].At != last {
		t.Errorf("got %+v, want three inserts, the first at %d, the last at %d", inserts, first, last)
	}
	if inserts, relax = (chat.Dialect{}).Info().Relax.Among(blocks, []byte(body)); relax != nil || len(inserts) != 2 {
		t.Errorf("another API: %+v", inserts)
	}
}
