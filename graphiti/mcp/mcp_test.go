package mcp

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/graphititest"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/remote"
	"github.com/graphiti-proxy/graphiti-proxy/internal/helptest"
)

var must = helptest.Must

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var ages = map[string]graphititest.Age{"today's": graphititest.Today, "older": graphititest.Old}

func standIn(t *testing.T, o graphititest.Options) (*graphititest.Graphiti, *Client) {
	t.Helper()
	s, err := graphititest.Start(o)
	must(t, err)
	t.Cleanup(func() { s.Close() })
	m, err := New(remote.Options{Endpoint: s.URL(), APIKey: func() string { return "secret" }})
	must(t, err)
	t.Cleanup(func() { m.Close() })
	return s, m
}

func saying(name, text string) graphiti.Row {
	return graphiti.Row{Name: name, Speaker: "Ada", Role: graphiti.RoleUser, Text: text, Said: time.Now().Add(time.Hour), Source: "{}"}
}

func TestMCPRemembersAndForgets(t *testing.T) {
	for name, age := range ages {
		t.Run(name+" server", func(t *testing.T) {
			s, m := standIn(t, graphititest.Options{MCP: age})
			ctx := t.Context()
			if err := m.Health(ctx); err != nil {
				t.Fatal("health: ", err)
			}
			if list, err := m.Episodes(ctx, "g", 5); err != nil || len(list) != 0 {
				t.Fatalf("an empty group lists %v, %v; want nothing", list, err)
			}
			must(t, m.Write(ctx, "g", []graphiti.Row{saying("1", "My cat is called Miso."), saying("2", "Miso is a cat of Ada's.")}))
			must(t, m.Write(ctx, "other", []graphiti.Row{saying("1", "My cat is called Tom.")}))
			settle(t, s)
			list, err := m.Episodes(ctx, "g", 1)
			if err != nil || len(list) != 1 || list[0].Name != "2" || list[0].Speaker != "Ada" || list[0].Role != graphiti.RoleUser || list[0].Text != "Miso is a cat of Ada's." {
				t.Fatalf("the last episode is %+v, %v; want 2, by Ada", list, err)
			}
			facts, err := m.Search(ctx, []string{"g"}, "What is my cat called, Miso?", 5)
			if err != nil || len(facts) != 2 || facts[0].Text != "My cat is called Miso." || len(facts[0].Episodes) != 1 || facts[0].Episodes[0] != s.Episodes("g")[0].UUID {
				t.Fatalf("found %+v, %v; want two facts, with the episodes that they are from", facts, err)
			}
			if n := s.Counts().Calls[graphititest.Tool("search_nodes")] + s.Counts().Calls[graphititest.Tool("search_memory_nodes")]; n > 0 {
				t.Errorf("summaries of entities were searched %d times: they hold what is no longer true", n)
			}
			if facts, err := m.Search(ctx, []string{"g", "other"}, "called", 5); err != nil || len(facts) != 2 {
				t.Fatalf("a search in two groups finds %+v, %v; want two facts", facts, err)
			}
			exported := 0
			if err := m.Export(ctx, "g", func(graphiti.Row) error { exported++; return nil }); err != nil || exported != 2 {
				t.Fatalf("exported %d episodes, %v; want 2", exported, err)
			}
			switch err := m.Forget(ctx, "g"); {
			case age == graphititest.Old:
				if !errors.Is(err, errClearsAll) || s.Counts().Calls[graphititest.Tool("clear_graph")] != 0 {
					t.Errorf("a server that can only forget everybody: %v, asked %d times", err, s.Counts().Calls[graphititest.Tool("clear_graph")])
				}
			case err != nil || len(s.Episodes("g")) != 0 || len(s.Episodes("other")) != 1:
				t.Errorf("forget: %v", err)
			}
			for _, r := range s.Requests() {
				if r.Authorization != "Bearer secret" {
					t.Errorf("%s without the key", r.Call)
				}
			}
		})
	}
}

// TestMCPSessionIsRenewed checks that a client whose session is unknown to the server, as
// after a restart, opens a new one and repeats the call.
func TestMCPSessionIsRenewed(t *testing.T) {
	for name, age := range ages {
		t.Run(name+" server", func(t *testing.T) {
			s, m := standIn(t, graphititest.Options{MCP: age})
			for range 3 {
				must(t, m.Write(t.Context(), "g", []graphiti.Row{saying("1", "Hello there.")}))
				settle(t, s)
				s.Restart()
			}
			if n := len(s.Episodes("g")); n != 3 {
				t.Errorf("%d messages arrived, want 3", n)
			}
		})
	}
}

// TestMCPFaults checks that the error of a failed call reports its cause and whether the
// call may have had an effect, and that the next call works.
func TestMCPFaults(t *testing.T) {
	for name, c := range map[string]struct {
		fault             graphititest.Fault
		retryable, unsent bool
		status            int
	}{
		"refused":     {graphititest.Refuse(), true, false, 0},
		"error":       {graphititest.Answer(500, ""), true, false, 500},
		"unavailable": {graphititest.Answer(503, "7"), true, true, 503},
		"too many":    {graphititest.Answer(429, "7"), true, true, 429},
		"unwanted":    {graphititest.Answer(422, ""), false, true, 422},
		"moved":       {graphititest.Answer(307, ""), true, true, 307},
		"garbage":     {graphititest.Garbage(), true, false, 0},
		"hangs":       {graphititest.Hang(), true, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s, m := standIn(t, graphititest.Options{MCP: graphititest.Today})
			must(t, m.Write(t.Context(), "g", []graphiti.Row{saying("1", "Hello there.")}))
			ctx := t.Context()
			if name == "hangs" {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(t.Context(), 100*time.Millisecond)
				defer cancel()
			}
			s.Next(graphititest.Tool("add_memory"), c.fault)
			err := m.Write(ctx, "g", []graphiti.Row{saying("2", "The secret word is swordfish.")})
			var status *graphiti.StatusError
			switch {
			case err == nil:
				t.Fatal("no error")
			case graphiti.Retryable(err) != c.retryable || graphiti.Unsent(err) != c.unsent:
				t.Errorf("%v: retryable %v, unsent %v", err, graphiti.Retryable(err), graphiti.Unsent(err))
			case c.status != 0 && (!errors.As(err, &status) || status.Code != c.status):
				t.Errorf("%v is not a %d", err, c.status)
			case strings.Contains(err.Error(), "swordfish"):
				t.Errorf("the error quotes a message: %v", err)
			case status != nil && (c.status == 429 || c.status == 503) && status.RetryAfter != 7*time.Second:
				t.Errorf("retry after %s", status.RetryAfter)
			}
			if err := m.Write(t.Context(), "g", []graphiti.Row{saying("3", "Again.")}); err != nil {
				t.Errorf("the next call: %v", err)
			}
		})
	}
}

// TestMCPInstructsTheModel checks that a server gets instructions for its model if it
// accepts them.
func TestMCPInstructsTheModel(t *testing.T) {
	for name, age := range map[string]graphititest.Age{"today's": graphititest.Today, "earlier": graphititest.Earlier} {
		s, m := standIn(t, graphititest.Options{MCP: age})
		must(t, m.Write(t.Context(), "g", []graphiti.Row{saying("1", "Hello there.")}))
		takes := age == graphititest.Today
		if got := slices.ContainsFunc(s.Requests(), func(r graphititest.Received) bool {
			return strings.Contains(string(r.Body), "custom_extraction_instructions\":")
		}); got != takes {
			t.Errorf("%s: instructions sent: got %v, want %v", name, got, takes)
		}
	}
}

// TestMCPHalfWritten checks that an error does not count as unsent after an earlier message
// of the same Write was sent.
func TestMCPHalfWritten(t *testing.T) {
	s, m := standIn(t, graphititest.Options{MCP: graphititest.Today})
	s.Next(graphititest.Tool("add_memory"), nil, graphititest.Answer(503, ""))
	err := m.Write(t.Context(), "g", []graphiti.Row{saying("1", "One."), saying("2", "Two.")})
	if err == nil || graphiti.Unsent(err) || !graphiti.Retryable(err) {
		t.Errorf("got error %v, want one that is retryable, after the request was sent", err)
	}
}

// TestMCPLies checks that any wrong answer of a server results in an error, before the
// deadline.
func TestMCPLies(t *testing.T) {
	for name, h := range map[string]http.HandlerFunc{
		"a web page": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>it works")) },
		"nothing":    func(http.ResponseWriter, *http.Request) {},
		"another's answer": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(`{"jsonrpc":"2.0","id":99,"result":{}}`))
		},
		"a redirect for ever": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/mcp", http.StatusTemporaryRedirect)
		},
		"endless": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			for r.Context().Err() == nil {
				if _, err := w.Write([]byte(strings.Repeat("data: x\n", 1000))); err != nil {
					return
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(h)
			t.Cleanup(s.Close)
			m, err := New(remote.Options{Endpoint: s.URL})
			must(t, err)
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			if facts, err := m.Search(ctx, []string{"g"}, "x", 5); err == nil {
				t.Errorf("found %v", facts)
			}
			must(t, m.Close())
		})
	}
}

func TestMCPCheck(t *testing.T) {
	_, m := standIn(t, graphititest.Options{MCP: graphititest.Today})
	if names, failed := checks(func(report func(remote.Check)) {
		m.Check(t.Context(), report)
		remote.Smoke(t.Context(), m.Memory(), report)
	}); len(failed) > 0 || len(names) != 7 || !slices.Contains(names, "get_status") {
		t.Errorf("checked %v, failed %v, want 7 checks, get_status among them, and no failure", names, failed)
	}
}

// TestCallsOfToolsAreCounted checks the counts of calls by name and outcome.
func TestCallsOfToolsAreCounted(t *testing.T) {
	s, err := graphititest.Start(graphititest.Options{MCP: graphititest.Today})
	must(t, err)
	counts := make(map[string]int)
	m, err := New(remote.Options{Endpoint: s.URL(), Called: func(call string, o remote.Outcome) { counts[call+" "+string(o)]++ }})
	must(t, err)
	for range 2 {
		_, _ = m.Search(t.Context(), []string{"g"}, "x", 1)
	}
	_ = m.Health(t.Context())
	_ = m.CheckDatabase(t.Context())
	_ = m.Close()
	s.Close()
	_ = m.Health(t.Context())
	want := map[string]int{"initialize ok": 1, "search_memory_facts ok": 2, "health ok": 1, "get_status ok": 1, "health unreachable": 1}
	if diff := cmp.Diff(want, counts); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

// TestFactsOfAnotherGroupAreLeftOut checks that a fact is dropped if the server reports another group.
func TestFactsOfAnotherGroupAreLeftOut(t *testing.T) {
	for said, want := range map[string]int{"g": 1, "": 1, "other": 0} {
		if got := factsIn("g", []remote.FactJSON{{Group: said, Fact: "Miso is a cat."}}, 9); len(got) != want || want > 0 && got[0].Group != "g" {
			t.Errorf("factsIn with group %q: %+v, want %d of g", said, got, want)
		}
	}
}

// TestCheckOfAnotherService checks that another service fails a single check, with the
// probable backend in its remedy.
func TestCheckOfAnotherService(t *testing.T) {
	s := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(s.Close)
	m, err := New(remote.Options{Endpoint: s.URL})
	must(t, err)
	names, failed := checks(func(report func(remote.Check)) { m.Check(t.Context(), report) })
	if len(names) != 1 || !strings.Contains(failed["health"].Remedy, "memory.backend to graphiti") {
		t.Errorf("checked %v: %+v", names, failed)
	}
}

// checks runs a series of checks and returns all names and the failed checks.
func checks(run func(report func(remote.Check))) (names []string, failed map[string]remote.Check) {
	failed = make(map[string]remote.Check)
	run(func(c remote.Check) {
		names = append(names, c.Name)
		if !c.OK {
			failed[c.Name] = c
		}
	})
	return names, failed
}

func settle(t *testing.T, s *graphititest.Graphiti) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), helptest.Patience)
	defer cancel()
	must(t, s.Settle(ctx))
}

// TestRefusedHost checks the remedy for a Graphiti server on localhost, which answers other
// Hosts with 421.
func TestRefusedHost(t *testing.T) {
	s, err := graphititest.Start(graphititest.Options{MCP: graphititest.Today})
	must(t, err)
	t.Cleanup(func() { s.Close() })
	s.Always("POST /mcp", graphititest.Answer(http.StatusMisdirectedRequest, ""))
	m, err := New(remote.Options{Endpoint: s.URL()})
	must(t, err)
	t.Cleanup(func() { m.Close() })
	m.Check(t.Context(), func(c remote.Check) {
		if !c.OK && (!strings.Contains(c.Remedy, "--host 0.0.0.0") || !strings.Contains(c.Remedy, "Host: localhost")) {
			t.Errorf("check %s: got remedy %q, want the rule for the Host", c.Name, c.Remedy)
		}
		if c.Name == "tools" && c.OK {
			t.Error("got tools from a server that refuses the Host, want none")
		}
	})
}
