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

// TestUnlistedEveryFaultEveryTurnOnce checks a server that lists no messages and shows them
// only in a search: despite any fault of a call, each turn is stored once and verified, and
// delivery does not stall.
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

// TestNothingIsShown checks an MCP server that never shows accepted messages, neither in a
// listing nor in a search. Turns are delivered as without verification, and the status
// reports this. Turns in doubt are put aside, and no message is written twice.
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

// TestSilenceAfterListings checks that a server that listed messages before and then shows
// none counts as stalled: its turn waits, and is stored once after the repair.
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

// TestStallDiagnosis checks that the diagnosis of a stalled memory depends on whether it
// has ever stored a turn.
func TestStallDiagnosis(t *testing.T) {
	for _, tc := range []struct {
		kept      int // turns stored before the worker ends
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

// TestWhatComesBetweenTwoLooks checks that the listings of a server do not count as broken
// if a turn is stored between a listing and the search after it.
func TestWhatComesBetweenTwoLooks(t *testing.T) {
	searched := make(chan struct{})
	begins := sync.OnceFunc(func() { close(searched) })
	s, m := mcpService(t, graphititest.Options{MCP: graphititest.Today, DelayOf: func(string) time.Duration {
		select { // stores the turn only after the first poll found an empty listing and has begun to search
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

// forgetful is a memory that reports its database only once.
type forgetful struct {
	*graph
	asked *atomic.Int64
}

func (f forgetful) Database(context.Context) string {
	if f.asked.Add(1) == 1 {
		return "neo4j"
	}
	return "" // no answer
}

// TestDatabaseThatWasSaid checks that a server that has never stored a turn counts as
// stalled, rather than as one that shows no messages, if it has once reported Neo4j. Its
// turns wait.
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

// TestFactsOfAnotherGroup checks that listings do not count as broken if a group does not
// list its barrier yet and a search shows only facts of other groups.
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
