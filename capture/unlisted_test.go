package capture

import (
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture/deliver"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/graphititest"
)

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

// TestServerThatListsNothing checks a server that lists no messages. Whether a search shows facts or
// not, and despite faults of calls, each turn that counts as delivered is there, each is sent once
// unless a call that stored it failed, and delivery does not stall.
func TestServerThatListsNothing(t *testing.T) {
	faults := map[string]graphititest.Fault{
		"none":              nil,
		"refused":           graphititest.Refuse(),
		"hangs":             graphititest.Hang(),
		"error":             graphititest.Answer(500, ""),
		"unavailable":       graphititest.Answer(503, "0"),
		"garbage":           graphititest.Garbage(),
		"failed but stored": graphititest.FailedButStored(),
		"slow":              graphititest.Slow(4 * time.Second),
	}
	for blind, want := range map[graphititest.Blindness]graphiti.Diagnosis{graphititest.BlindListing: graphiti.Unlisted, graphititest.BlindAll: graphiti.Unshown} {
		for _, call := range []graphititest.Call{graphititest.Tool("add_memory"), graphititest.Tool("search_memory_facts"), graphititest.Tool("get_episodes")} {
			for name, fault := range faults {
				t.Run(fmt.Sprintf("%s, %s, %s", want, call, name), func(t *testing.T) {
					t.Parallel()
					s, m := mcpService(t, graphititest.Options{MCP: graphititest.Today})
					s.Blind(blind)
					for range 3 {
						s.Next(call, fault)
					}
					p := verifying(t, filepath.Join(t.TempDir(), "spool.db"), m, func(o *Options, tm *deliver.Timing) { o.Timeout = 3 * time.Second })
					var ids []string
					for i := range 6 {
						ids = append(ids, fmt.Sprint(i))
						add(t, p, spoken(ids[i], "a", "b"))
					}
					waitFor(t, "all turns", func() bool { st := p.Status(); return st.Delivered == 12 && st.Pending == 0 && st.Unlisted != nil })
					if st := p.Status(); st.Unlisted == nil || st.Verified != 0 || st.Stalled != nil || st.Diagnosis != want {
						t.Errorf("got %+v, want Unlisted set, Verified 0, no stall, Diagnosis %s", st, want)
					}
					settled(t, s)
					if name != "failed but stored" {
						once(t, s, "a", ids...)
						once(t, s, "b", ids...)
						return
					}
					for _, g := range []string{"a", "b"} {
						if n := len(s.Episodes(g)); n < 12 || n > 18 {
							t.Errorf("group %s has %d episodes, want 12 to 18", g, n)
						}
					}
				})
			}
		}
	}
}

// TestUnclearAnswersEnd checks that a turn whose calls never have a clear answer is not sent forever to a
// server that lists nothing: it is dead after some of them, once the server has accepted
// another turn. If none has a clear answer, all wait.
func TestUnclearAnswersEnd(t *testing.T) {
	const hours = 6
	for _, all := range []bool{false, true} {
		t.Run(fmt.Sprint("all ", all), func(t *testing.T) {
			calls, sick := 0, true
			g := &graph{apart: true, blind: true}
			g.unclear = func(content string) bool {
				if sick && (all || strings.Contains(content, "user odd")) {
					calls++
					return true
				}
				return false
			}
			inBubble(t, g, func(t *testing.T, p *Pipeline, _ *logged) {
				add(t, p, spoken("odd", "a"))
				add(t, p, spoken("1", "a"))
				time.Sleep(hours * time.Hour)
				add(t, p, spoken("2", "a"))
				time.Sleep(hours * time.Hour)
				g.set(func() { sick = false })
				st := p.Status()
				if calls > 2*hours+30 {
					t.Errorf("%d calls for the unclear turns", calls)
				}
				if !all && (st.Dead != 1 || st.Delivered != 2 || g.times("a", "1") == 0 || g.times("a", "2") != 1) {
					t.Errorf("got %+v, want Dead 1, Delivered 2", st)
				}
				if all && (st.Dead != 0 || st.Delivered != 0 || st.Pending != 3) {
					t.Errorf("got %+v, want Dead 0, Delivered 0, Pending 3", st)
				}
				if all {
					until(t, "all turns", func() bool { return p.Status().Delivered == 3 })
				}
			})
		})
	}
}

// TestTurnStoredBetweenListings checks that the listings of a server do not count as broken
// if a turn is stored between a listing and the search after it.
func TestTurnStoredBetweenListings(t *testing.T) {
	searched := make(chan struct{})
	begins := sync.OnceFunc(func() { close(searched) })
	s, m := mcpService(t, graphititest.Options{MCP: graphititest.Today, DelayOf: func(string) time.Duration {
		select { // stores the turn only after a listing was empty and the search has begun
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
	p := verifying(t, filepath.Join(t.TempDir(), "spool.db"), m)
	add(t, p, spoken("1", "a"))
	waitFor(t, "the turn", func() bool { return p.Status().Verified == 1 })
	if st := p.Status(); st.Unlisted != nil || s.Counts().Calls[graphititest.Tool("search_memory_facts")] == 0 {
		t.Errorf("got %+v, want Unlisted not set, and a search for facts", st)
	}
}

// TestListingsThatWorkAgain checks that a server counts as one that lists turns again once it does.
func TestListingsThatWorkAgain(t *testing.T) {
	g := &graph{apart: true, blind: true}
	inBubble(t, g, func(t *testing.T, p *Pipeline, _ *logged) {
		add(t, p, spoken("1", "a"))
		until(t, "the first turn", func() bool { return p.Status().Delivered == 1 })
		g.set(func() { g.blind = false })
		time.Sleep(2 * time.Hour)
		add(t, p, spoken("2", "a"))
		until(t, "the second turn", func() bool { return p.Status().Delivered == 2 })
		if st := p.Status(); st.Verified != 1 || st.Unlisted != nil {
			t.Errorf("got %+v, want Verified 1, Unlisted not set", st)
		}
	})
}
