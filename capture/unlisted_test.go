package capture

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture/deliver"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/graphititest"
)

// TestUnlistedEveryFaultEveryTurnOnce: the server lists nothing of what it
// holds, and a search shows it. Whatever happens to calls, each turn is in its
// group once, is verified, and nothing stops.
func TestUnlistedEveryFaultEveryTurnOnce(t *testing.T) {
	faults := map[string]graphititest.Fault{
		"none":              nil,
		"refused":           graphititest.Refuse(),
		"hangs":             graphititest.Hang(),
		"error":             graphititest.Answer(500, ""),
		"unavailable":       graphititest.Answer(503, ""),
		"garbage":           graphititest.Garbage(),
		"failed but stored": graphititest.FailedButStored(),
		"slow":              graphititest.Slow(1500 * time.Millisecond),
	}
	for name, fault := range faults {
		for _, call := range []graphititest.Call{graphititest.Tool("add_memory"), graphititest.Tool("search_memory_facts"), graphititest.Messages, graphititest.Search} {
			t.Run(fmt.Sprintf("%s, %s", call, name), func(t *testing.T) {
				t.Parallel()
				var s *graphititest.Graphiti
				var m Memory
				if strings.HasPrefix(string(call), "tool") {
					s, m = mcpService(t, graphititest.Options{MCP: graphititest.Today})
				} else {
					s, m = service(t, graphititest.Options{})
				}
				s.Blind(graphititest.BlindListing)
				for range 2 {
					s.Next(call, fault)
				}
				p := verifying(t, filepath.Join(t.TempDir(), "spool.db"), m, func(o *Options, tm *deliver.Timing) { o.Timeout = time.Second })
				var ids []string
				for i := range 6 {
					ids = append(ids, fmt.Sprint(i))
					tn := spoken(ids[i], "a", "b")
					tn.Said = time.Now().Add(-time.Hour).Add(time.Duration(i) * time.Minute)
					tn.Answered = tn.Said.Add(10 * time.Second)
					add(t, p, tn)
				}
				waitFor(t, "all turns", func() bool { s := p.Status(); return s.Delivered == 12 && s.Pending == 0 })
				settled(t, s)
				once(t, s, "a", ids...)
				once(t, s, "b", ids...)
				if st := p.Status(); st.Verified != 12 || st.Unlisted == nil || st.Stalled != nil || st.Diagnosis != graphiti.Unlisted {
					t.Errorf("got %+v, want Verified 12, Unlisted set, no stall, Diagnosis graphiti.Unlisted", st)
				}
			})
		}
	}
}

// TestNothingIsShown: over MCP neither a listing nor a search shows what was
// accepted, from the beginning. Turns go on as without verification, and the
// status says so; what is in doubt is put aside, and nothing is written twice.
func TestNothingIsShown(t *testing.T) {
	for name, fault := range map[string]graphititest.Fault{"no fault": nil, "hangs": graphititest.Hang(), "failed but stored": graphititest.FailedButStored(), "refused": graphititest.Answer(503, "0")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, m := mcpService(t, graphititest.Options{MCP: graphititest.Today})
			s.Blind(graphititest.BlindAll)
			s.Next(graphititest.Tool("add_memory"), fault)
			p := verifying(t, filepath.Join(t.TempDir(), "spool.db"), m, func(o *Options, _ *deliver.Timing) { o.Timeout = 2 * time.Second })
			var ids []string
			for i := range 6 {
				ids = append(ids, fmt.Sprint(i))
				add(t, p, spoken(ids[i], "a"))
			}
			waitFor(t, "all turns", func() bool { s := p.Status(); return s.Pending == 0 && s.Delivered+s.Dead == 6 })
			settled(t, s)
			count := make(map[string]int)
			for _, e := range s.Episodes("a") {
				if count[e.Name]++; count[e.Name] > 1 {
					t.Errorf("%s is there %d times", e.Name, count[e.Name])
				}
			}
			st := p.Status()
			if st.Unlisted == nil || st.Verified != 0 || st.Stalled != nil || st.Diagnosis != graphiti.Unshown || st.Dead > 1 {
				t.Errorf("got %+v, want Unlisted set, Verified 0, no stall, Diagnosis graphiti.Unshown, Dead at most 1", st)
			}
			if len(count) < 2*st.Delivered {
				t.Errorf("%d turns count as delivered, and %d messages are there", st.Delivered, len(count))
			}
		})
	}
}

// TestSilenceAfterListings: a server that listed before and shows nothing any
// more has stopped working; nothing is sent on, and nothing is lost.
func TestSilenceAfterListings(t *testing.T) {
	broken := false
	g := &graph{apart: true, takes: time.Second,
		raises: func(string) bool { return broken },
		fails: func(call, _ string) error {
			if broken && call == "search" {
				return &graphiti.StatusError{Code: http.StatusInternalServerError, Detail: "Error code: 401 - {'error': {'message': 'Incorrect API key provided: sk-secret', 'code': 'invalid_api_key'}}"}
			}
			return nil
		}}
	inBubble(t, g, func(t *testing.T, p *Pipeline, _ *logged) {
		add(t, p, spoken("1", "a"))
		until(t, "the first turn", func() bool { return p.Status().Verified == 1 })
		g.set(func() { broken = true })
		add(t, p, spoken("2", "a"))
		until(t, "the stall and its cause", func() bool { st := p.Status(); return st.Stalled != nil && st.Diagnosis == graphiti.ModelKey })
		if st := p.Status(); st.Unlisted != nil || st.Pending != 1 {
			t.Errorf("got %+v, want Unlisted not set, Pending 1", st)
		}
		g.set(func() { broken = false })
		until(t, "the second turn", func() bool { return p.Status().Verified == 2 })
		want := []string{
			graphiti.EpisodeName("1", graphiti.RoleUser), graphiti.EpisodeName("1", graphiti.RoleAssistant),
			graphiti.EpisodeName("2", graphiti.RoleUser), graphiti.EpisodeName("2", graphiti.RoleAssistant),
		}
		slices.Sort(want)
		until(t, "each message once, and no barrier", func() bool { return slices.Equal(g.names("a"), want) })
	})
}

// TestStallDiagnosis: what is said about a memory that keeps nothing fits its
// kind and its past.
func TestStallDiagnosis(t *testing.T) {
	for _, tc := range []struct {
		kept      int // turns before its worker ends
		diagnosis graphiti.Diagnosis
		remedy    string
	}{
		{0, graphiti.NeverKept, "neo4j<6"},
		{1, graphiti.WorkerDead, "restart Graphiti"},
	} {
		g := &graph{}
		inBubble(t, g, func(t *testing.T, p *Pipeline, _ *logged) {
			for i := range tc.kept {
				add(t, p, spoken(fmt.Sprint(i), "a"))
				until(t, "a turn", func() bool { return p.Status().Verified == i+1 })
			}
			g.set(func() { g.dead = true })
			add(t, p, spoken("lost", "a"))
			until(t, "the stall", func() bool { return p.Status().Stalled != nil })
			if st := p.Status(); st.Diagnosis != tc.diagnosis || !strings.Contains(st.Diagnosis.Remedy(), tc.remedy) || st.Pending != 1 {
				t.Errorf("after %d turns: got %+v, want Diagnosis %q, %q in its remedy, Pending 1", tc.kept, st, tc.diagnosis, tc.remedy)
			}
		})
	}
}

// TestWhatComesBetweenTwoLooks: a turn is kept after a listing and before a
// search. The server lists well.
func TestWhatComesBetweenTwoLooks(t *testing.T) {
	searched := make(chan struct{})
	begins := sync.OnceFunc(func() { close(searched) })
	s, m := mcpService(t, graphititest.Options{MCP: graphititest.Today, DelayOf: func(string) time.Duration {
		select { // the turn is there only when the first look, which lists nothing, has begun to search
		case <-searched:
		case <-t.Context().Done():
		}
		return 0
	}})
	s.Always(graphititest.Tool("search_memory_facts"), func(w http.ResponseWriter, r *http.Request, serve http.HandlerFunc) {
		begins()
		settled(t, s)
		serve(w, r)
	})
	p := verifying(t, filepath.Join(t.TempDir(), "spool.db"), m, func(o *Options, tm *deliver.Timing) {
		tm.StallAfter = time.Minute
	})
	add(t, p, spoken("1", "a"))
	waitFor(t, "the turn", func() bool { return p.Status().Verified == 1 })
	if st := p.Status(); st.Unlisted != nil || s.Counts().Calls[graphititest.Tool("search_memory_facts")] == 0 {
		t.Errorf("got %+v, want Unlisted not set, and a search for facts", st)
	}
	once(t, s, "a", "1")
}

// forgetful is a memory that says once which database it has.
type forgetful struct {
	*graph
	asked *atomic.Int64
}

func (f forgetful) Database(context.Context) string {
	if f.asked.Add(1) == 1 {
		return "neo4j"
	}
	return "" // it does not answer
}

// TestDatabaseThatWasSaid: a server on Neo4j that has never kept a turn, and
// does not always say that it is on Neo4j, is not taken for one that shows
// nothing: its turns wait.
func TestDatabaseThatWasSaid(t *testing.T) {
	m := forgetful{&graph{apart: true, raises: func(string) bool { return true }}, &atomic.Int64{}}
	inBubble(t, m, func(t *testing.T, p *Pipeline, _ *logged) {
		add(t, p, spoken("1", "a"))
		until(t, "the stall, and many looks", func() bool { return p.Status().Stalled != nil && m.asked.Load() > 10 })
		if st := p.Status(); st.Unlisted != nil || st.Pending != 1 {
			t.Errorf("got %+v, want Unlisted not set, Pending 1", st)
		}
	})
}

// shared is a memory whose probe group holds the fact of another worker's barrier.
type shared struct{ *graph }

func (s shared) Search(ctx context.Context, groups []string, query string, n int) ([]graphiti.Fact, error) {
	facts, err := s.graph.Search(ctx, groups, query, n)
	if slices.ContainsFunc(groups, func(g string) bool { return strings.HasPrefix(g, graphiti.CheckGroupPrefix) }) {
		facts = append(facts, graphiti.Fact{Text: graphiti.CheckText})
	}
	return facts, err
}

// TestFactsOfAnotherGroup: a barrier that a group does not list yet, while a
// search shows facts of other groups, does not mean that listings are broken.
func TestFactsOfAnotherGroup(t *testing.T) {
	g := &graph{apart: true, takes: time.Second}
	fails := 0
	inBubble(t, shared{g}, func(t *testing.T, p *Pipeline, log *logged) {
		add(t, p, spoken("1", "a"))
		until(t, "the first turn", func() bool { return p.Status().Verified == 1 })
		g.set(func() {
			fails = 2 // the turn, and the first barrier for it
			g.fails = func(call, group string) error {
				if call == "write" && group == "b" && fails > 0 {
					fails--
					return &graphiti.StatusError{Code: http.StatusInternalServerError}
				}
				return nil
			}
		})
		add(t, p, spoken("2", "b"))
		until(t, "the second turn", func() bool { return p.Status().Verified == 2 })
		if got := log.lines("listings do not show"); len(got) > 0 {
			t.Errorf("logged %q, want nothing: listings work", got)
		}
		want := []string{graphiti.EpisodeName("2", graphiti.RoleAssistant), graphiti.EpisodeName("2", graphiti.RoleUser)}
		until(t, "each message once, and no barrier", func() bool { return slices.Equal(g.names("b"), want) })
	})
}
