package proxy

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/inject"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/identity"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/observe"
)

// explained returns the explanation of a request by a server with an empty memory.
func explained(t *testing.T, m *Memory, namer graphiti.Namer, path string, header map[string][]string, body []byte) Explanation {
	t.Helper()
	var planner Planner
	if m.Off.Reason == inject.ReasonNone {
		dry := inject.New(planning(inject.Services{}), namer, inject.RecallSettings{Timeout: time.Minute, MaxFacts: 10, MaxChars: 1000})
		t.Cleanup(dry.Close)
		planner = dry
	}
	return m.Explain(planner, testLimits(), path, header, body)
}

// fixture is a recorded request, or one written for a scenario.
type fixture struct {
	name, path string
	header     map[string]string
	body       string
}

// fixtures returns the requests of all dialects and of all recorded clients.
func fixtures(t *testing.T) (list []fixture) {
	t.Helper()
	for folder, path := range map[string]string{
		"chat": chatPath, "messages": "/v1/messages", "responses": "/v1/responses", "gemini": "/v1beta/models/gemini-3-pro:generateContent",
	} {
		files, err := filepath.Glob(filepath.Join("..", "internal", "dialect", folder, "testdata", "*.txtar"))
		must(t, err)
		for _, file := range files {
			archive, err := txtar.ParseFile(file)
			must(t, err)
			for _, f := range archive.Files {
				if strings.HasSuffix(f.Name, "request") {
					list = append(list, fixture{name: file + " " + f.Name, path: path, body: strings.ReplaceAll(string(f.Data), "«»", "")})
				}
			}
		}
	}
	for _, r := range recordedClients {
		list = append(list, fixture{r.client, r.path, r.headers, r.body})
	}
	return list
}

// state is a memory with one fact that stores decisions and sessions.
type state struct {
	mu        sync.Mutex // guards decisions and sessions
	decisions map[[16]byte]inject.Decision
	sessions  map[[16]byte]string
}

func newState() *state {
	return &state{decisions: make(map[[16]byte]inject.Decision), sessions: make(map[[16]byte]string)}
}

func (s *state) Search(context.Context, []string, string, int) ([]graphiti.Fact, error) {
	return []graphiti.Fact{{UUID: "1", Text: "Miso is a cat", CreatedAt: time.Now()}}, nil
}

func (s *state) Weighs() bool { return true }

func (s *state) Lookup(_ context.Context, _ int64, keys [][16]byte) ([]*inject.Decision, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]*inject.Decision, len(keys))
	for i, k := range keys {
		if d, ok := s.decisions[k]; ok {
			list[i] = &d
		}
	}
	return list, nil
}

func (s *state) Keep(_ context.Context, k [16]byte, d inject.Decision, _ ...string) (*inject.Decision, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.decisions[k]; !ok {
		s.decisions[k] = d
	}
	d = s.decisions[k]
	return &d, nil
}

func (s *state) Drop(_ context.Context, k [16]byte, d inject.Decision) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.decisions[k] = d
	return nil
}

// kept returns a copy of the stored decisions and sessions.
func (s *state) kept() []any {
	s.mu.Lock()
	defer s.mu.Unlock()
	return []any{maps.Clone(s.decisions), maps.Clone(s.sessions)}
}

// stateSessions stores sessions in a state.
type stateSessions struct{ *state }

func (s stateSessions) Pending(ctx context.Context, fingerprints ...[16]byte) (string, bool) {
	session, ok, _ := s.Find(ctx, fingerprints)
	return session, ok
}

func (s stateSessions) SetPending(_ context.Context, fingerprint [16]byte, session string) {
	s.PutAsync(fingerprint, session)
}
func (s stateSessions) EndPending([16]byte) {}

func (s stateSessions) Find(_ context.Context, fingerprints [][16]byte) (string, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range fingerprints {
		if session, ok := s.sessions[f]; ok {
			return session, true, nil
		}
	}
	return "", false, nil
}

func (s stateSessions) Put(_ context.Context, session string, fingerprints ...[16]byte) error {
	for _, f := range fingerprints {
		s.PutAsync(f, session)
	}
	return nil
}

func (s stateSessions) PutAsync(fingerprint [16]byte, session string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sessions[fingerprint] = session
}

// keptTurns reports every turn as recorded.
type keptTurns struct{ noService }

func (keptTurns) Kept(string, []graphiti.Target) bool { return true }

// readDecisions loads decisions but stores none.
type readDecisions struct{ inject.Decisions }

func (readDecisions) Keep(_ context.Context, _ [16]byte, d inject.Decision, _ ...string) (*inject.Decision, error) {
	return &d, nil
}

// served is a planner that records its latest plan.
type served struct {
	*inject.Planner
	session string
	plan    inject.Plan
}

func (s *served) Plan(ctx context.Context, c *dialect.Conversation, chain []dialect.Fingerprint, who graphiti.Who, first bool, mode inject.Mode) inject.Plan {
	s.session, s.plan = who.Session, s.Planner.Plan(ctx, c, chain, who, first, mode)
	return s.plan
}

// TestExplanationEqualsRequest checks that the explanation of each recorded request has
// the same status, reason, groups, inserts and session as the request itself, and writes no
// data.
func TestExplanationEqualsRequest(t *testing.T) {
	st, namer := newState(), graphiti.Namer{}
	services := inject.Services{Search: st, Decisions: st}
	settings := inject.RecallSettings{Timeout: time.Minute, MaxFacts: 10, MaxChars: 1000}
	live, dry := &served{Planner: inject.New(planning(services), namer, settings)}, inject.New(planning(inject.Services{Search: st, Decisions: readDecisions{st}}), namer, settings)
	t.Cleanup(live.Close)
	t.Cleanup(dry.Close)
	stub := newStub(t, say(okAnswer))
	s, base := start(t, stub.url(), func(o *Options) {
		o.Routes.Limits.Messages = 1000
		o.Memory = Memory{MemorySettings: MemorySettings{Identity: identity.Settings{Owner: "user:o"}, Recall: true, Ingest: true, Timeout: time.Minute}, Services: Services{Planner: live, Sessions: stateSessions{st}, Turns: keptTurns{}}}
	})
	recalled := 0
	for _, f := range fixtures(t) {
		header := make(http.Header)
		for k, v := range f.header {
			header.Set(k, v)
		}
		for _, again := range []bool{false, true} {
			before := st.kept()
			e := s.explain(*s.currentMemory(), dry, s.routing().limits, f.path, header, []byte(f.body))
			if diff := cmp.Diff(before, st.kept()); diff != "" {
				t.Fatalf("%s: written: %s", f.name, diff)
			}
			live.session, live.plan = "", inject.Plan{}
			req, err := http.NewRequest(http.MethodPost, base+f.path, strings.NewReader(f.body))
			must(t, err)
			req.Header = header.Clone()
			resp, err := client(t).Do(req)
			must(t, err)
			resp.Body.Close()
			if again { // the first session has a random name
				if e.session != live.session {
					t.Errorf("%s: session %s, served %s", f.name, e.session, live.session)
				}
			}
			want, got := outcomeWords(resp.Header.Get(memoryHeader)), fmt.Sprint(e.Status, " ", e.Reason)
			if got != want {
				t.Errorf("%s (again %v): explained %q, served %q", f.name, again, got, want)
			}
			var inserted []string
			for _, in := range live.plan.Inserts {
				inserted = append(inserted, string(in.Text))
			}
			if diff := cmp.Diff(inserted, e.Inserted); diff != "" {
				t.Errorf("%s (again %v): (-served +explained):\n%s", f.name, again, diff)
			}
			if len(e.Reads) != len(live.plan.Searched) || len(e.Writes) != len(live.plan.Write) {
				t.Errorf("%s (again %v): %d groups are read and %d written, served %d and %d", f.name, again, len(e.Reads), len(e.Writes), len(live.plan.Searched), len(live.plan.Write))
			}
			if len(e.Inserted) > 0 {
				recalled++
			}
		}
	}
	if recalled < 50 {
		t.Errorf("only %d have a block", recalled)
	}
}

// outcomeWords returns the status and the reason in a response header.
func outcomeWords(header string) string {
	status, rest, _ := strings.Cut(header, ";")
	_, reason, _ := strings.Cut(rest, "reason=")
	reason, _, _ = strings.Cut(reason, ";")
	return status + " " + reason
}

// TestRefusalsInTheirOrder checks that the first of several reasons against the memory is
// reported, and that removing it reveals the next.
func TestRefusalsInTheirOrder(t *testing.T) {
	m := &Memory{MemorySettings: MemorySettings{Recall: true, Ingest: true, Identity: identity.Settings{Owner: "user:o"}, Rules: Rules{
		SkipPaths: []string{chatPath}, SkipModels: []string{"m"}, Ignored: []string{"/i*"}, Trusted: []string{"/trusted"},
	}}, Off: Off{Reason: inject.ReasonConsent}}
	header := map[string][]string{"Origin": {"https://evil.example"}, "X-Graphiti-User": {"a", "b"}, memoryHeader: {"off"}, "Content-Encoding": {"unknown"}}
	body := `{"model":"m","messages":[{"role":"system","content":"Working directory: /i"}`
	limits := testLimits()
	limits.InspectBytes = 10
	for _, step := range []struct {
		want string
		mend func()
	}{
		{"consent", func() { m.Off = Off{} }},
		{"untrusted: a web page may have sent it", func() { delete(header, "Origin") }},
		{"opt_out", func() { m.Rules.SkipPaths = nil }},
		{"too_large", func() { limits.InspectBytes = 1 << 20 }},
		{"encoding", func() { delete(header, "Content-Encoding") }},
		{"encoding: the body is not understood", func() { body += "]}" }},
		{"untrusted: a header that names the person occurs twice, with different values, or its signature is invalid", func() { delete(header, "X-Graphiti-User") }},
		{"no_user_message", func() { body = strings.TrimSuffix(body, "]}") + `,{"role":"user","content":"hello"}]}` }},
		{"opt_out", func() { m.Rules.SkipModels = nil }},
		{"opt_out", func() { m.Rules.Ignored = nil }},
		{"place: " + observe.MissingHere.Remedy(), func() { m.Rules.RemotePaths = true }},
		{"untrusted", func() { m.Rules.Trusted = nil }},
		{"opt_out", func() { delete(header, memoryHeader) }},
		{"", nil},
	} {
		var planner Planner
		if m.Off.Reason == inject.ReasonNone {
			dry := inject.New(planning(inject.Services{}), graphiti.Namer{}, inject.RecallSettings{Timeout: time.Minute, MaxFacts: 10, MaxChars: 1000})
			t.Cleanup(dry.Close)
			planner = dry
		}
		if e := m.Explain(planner, limits, chatPath, header, []byte(body)); e.Off != step.want {
			t.Fatalf("%q, want %q", e.Off, step.want)
		}
		if step.mend != nil {
			step.mend()
		}
	}
}
