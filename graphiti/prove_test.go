package graphiti_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/graphititest"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/remote"
)

// TestDeletionIsProven checks that Forget trusts a deletion only if a later check finds no
// remains. Graphiti on FalkorDB answers 200 and deletes nothing.
func TestDeletionIsProven(t *testing.T) {
	for _, tc := range []struct {
		name     string
		o        graphititest.Options
		blind    graphititest.Blindness
		fails    bool
		episodes int // that remain listed
		facts    int
		remedy   string
	}{
		{"deleted", graphititest.Options{}, graphititest.Sees, false, 0, 0, ""},
		{"one by one", graphititest.Options{Deletes: graphititest.OneByOne}, graphititest.Sees, false, 0, 0, ""},
		{"in another graph", graphititest.Options{Deletes: graphititest.Elsewhere}, graphititest.Sees, true, 4, 4, "redis-cli GRAPH.DELETE g"},
		{"in words only", graphititest.Options{Deletes: graphititest.InWords}, graphititest.Sees, true, 4, 4, "Graphiti's log"},
		{"found though not listed", graphititest.Options{Deletes: graphititest.Elsewhere}, graphititest.BlindListing, true, 0, 4, "redis-cli GRAPH.DELETE g"},
		{"facts though not listed", graphititest.Options{Deletes: graphititest.OneByOne}, graphititest.BlindListing, false, 0, 0, ""},
	} {
		for _, over := range []string{"REST", "MCP"} {
			t.Run(tc.name+" over "+over, func(t *testing.T) {
				m, s := serviceOf(t, over, tc.o)
				for i := range 4 {
					writeOne(t, m, s, fmt.Sprint("n", i), fmt.Sprintf("Zyx%d qwv%d.", i, i))
				}
				s.Blind(tc.blind)
				err := m.Forget(t.Context(), "g")
				if !tc.fails {
					if err != nil {
						t.Fatalf("Forget: %v, want no error", err)
					}
					return
				}
				var left *graphiti.RemainsError
				if !errors.As(err, &left) {
					t.Fatalf("Forget: %v, want a RemainsError", err)
				}
				if left.Episodes != tc.episodes || left.Facts != tc.facts || !strings.Contains(graphiti.Remedy(err), tc.remedy) {
					t.Errorf("Forget: %+v, remedy %q; want %d episodes, %d facts, a remedy with %q", left, graphiti.Remedy(err), tc.episodes, tc.facts, tc.remedy)
				}
				if strings.Contains(err.Error(), "Zyx") {
					t.Errorf("the error quotes what was said: %v", err)
				}
			})
		}
	}
}

// TestForgettingASessionIsProven checks the same for a session.
func TestForgettingASessionIsProven(t *testing.T) {
	for _, tc := range []struct {
		name  string
		o     graphititest.Options
		fails bool
	}{
		{"deleted", graphititest.Options{}, false},
		{"in another graph", graphititest.Options{Deletes: graphititest.Elsewhere}, true},
		{"in words only", graphititest.Options{Deletes: graphititest.InWords}, true},
	} {
		for _, over := range []string{"REST", "MCP"} {
			t.Run(tc.name+" over "+over, func(t *testing.T) {
				m, s := serviceOf(t, over, tc.o)
				writeOne(t, m, s, "stays", "The bird sings.")
				writeOne(t, m, s, "goes", "Zyx qwv.")
				_, err := m.ForgetEpisodes(t.Context(), "g", func(e *graphiti.Row) bool { return e.Name == "goes" })
				var left *graphiti.RemainsError
				if errors.As(err, &left) != tc.fails || !tc.fails && err != nil || tc.fails && left.Episodes != 1 {
					t.Errorf("ForgetEpisodes: %+v, %v; want a RemainsError with 1 episode: %v", left, err, tc.fails)
				}
			})
		}
	}
	m, s := serviceOf(t, "MCP", graphititest.Options{})
	writeOne(t, m, s, "goes", "Zyx qwv.")
	s.Blind(graphititest.BlindListing)
	var left *graphiti.RemainsError
	if _, err := m.ForgetEpisodes(t.Context(), "g", func(*graphiti.Row) bool { return true }); !errors.As(err, &left) || left.Facts != 1 {
		t.Errorf("ForgetEpisodes with a server that lists nothing: %v, want a RemainsError with 1 fact", err)
	}
}

// TestForgettingASessionMeanwhile checks that an episode stored between the listing and the
// search is deleted too, and does not prove that the server lists no episodes.
func TestForgettingASessionMeanwhile(t *testing.T) {
	m, s := serviceOf(t, "MCP", graphititest.Options{})
	var once sync.Once
	s.Always(graphititest.Tool("search_memory_facts"), func(w http.ResponseWriter, r *http.Request, serve http.HandlerFunc) {
		once.Do(func() { writeOne(t, m, s, "goes", "Zyx qwv.") })
		serve(w, r)
	})
	names, err := m.ForgetEpisodes(t.Context(), "g", func(*graphiti.Row) bool { return true })
	if err != nil || len(names) != 1 {
		t.Errorf("ForgetEpisodes: %q, %v; want the episode that was kept meanwhile", names, err)
	}
}

// TestSmokeProvesItsCleanUp checks that the smoke test verifies the deletion of its group
// instead of trusting the answer.
func TestSmokeProvesItsCleanUp(t *testing.T) {
	for _, over := range []string{"REST", "MCP"} {
		m, _ := serviceOf(t, over, graphititest.Options{Deletes: graphititest.Elsewhere})
		var last remote.Check
		remote.Smoke(t.Context(), m, func(c remote.Check) { last = c })
		if last.Name != "delete the group" || last.OK || !strings.Contains(last.Remedy, "GRAPH.DELETE graphiti_proxy_smoke") {
			t.Errorf("over %s, the last check is %+v; want that deleting fails, with GRAPH.DELETE as remedy", over, last)
		}
	}
}

func serviceOf(t *testing.T, over string, o graphititest.Options) (*graphiti.Memory, *graphititest.Graphiti) {
	t.Helper()
	if over == "REST" {
		s, r := overREST(t, o)
		return r, s
	}
	o.MCP = graphititest.Today
	s, m := overMCP(t, o)
	return m, s
}

func writeOne(t *testing.T, m *graphiti.Memory, s *graphititest.Graphiti, name, text string) {
	t.Helper()
	err := m.Write(t.Context(), "g", []graphiti.Row{{Name: name, Speaker: "josh", Role: graphiti.RoleUser, Text: text, Said: time.Now().Add(-time.Minute)}})
	if err != nil {
		t.Fatal(err)
	}
	settle(t, s)
}
