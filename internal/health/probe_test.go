package health

import (
	"context"
	"errors"
	"maps"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// service is a memory service that counts its calls.
type service struct {
	health, database, search error
	checks, searches         int
}

func (s *service) Health(context.Context) error { return s.health }
func (s *service) Close() error                 { return nil }
func (s *service) CheckDatabase(context.Context) error {
	s.checks++
	return s.database
}

func (s *service) Search(context.Context, []string, string, int) ([]graphiti.Fact, error) {
	s.searches++
	return nil, s.search
}

// TestSearchesOfProbes: a service is searched every five minutes, while searches fail, and
// after another failure; its database is checked every 20 seconds.
func TestSearchesOfProbes(t *testing.T) {
	broken := errors.New("broken")
	for name, tc := range map[string]struct {
		fail func(s *service, suspect *atomic.Bool) // after the first search
		want int                                    // searches in the next nine checks
	}{
		"working":             {func(*service, *atomic.Bool) {}, 0},
		"database fails":      {func(s *service, _ *atomic.Bool) { s.database = broken }, 9},
		"another call failed": {func(_ *service, suspect *atomic.Bool) { suspect.Store(true) }, 1},
		"searches fail":       {func(s *service, suspect *atomic.Bool) { s.search = broken; suspect.Store(true) }, 9},
		"out of reach":        {func(s *service, _ *atomic.Bool) { s.health = broken }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, suspect := &service{}, new(atomic.Bool)
				p := NewProber(&graphiti.Memory{Searcher: s, Connection: s}, func() bool { return true }, func(context.Context) (int, error) { return 0, nil }, suspect)
				defer p.Close()
				passes := func(d time.Duration) int {
					before := s.searches
					time.Sleep(d) // of the bubble
					synctest.Wait()
					return s.searches - before
				}
				if got := passes(time.Second); got != 1 {
					t.Fatalf("got %d searches at the start, want 1", got)
				}
				tc.fail(s, suspect)
				if got := passes(9 * probeEvery); got != tc.want {
					t.Errorf("got %d searches in nine checks, want %d", got, tc.want)
				}
				if failed := p.Last().Search != nil; failed != (s.search != nil) {
					t.Errorf("the last search failed: %v, want %v", failed, s.search != nil)
				}
				s.health, s.database, s.search = nil, nil, nil
				passes(2 * probeEvery)
				if got := passes(4 * searchEvery); got != 4 {
					t.Errorf("got %d searches in 20 minutes of a working service, want 4", got)
				}
				if s.checks < 56 {
					t.Errorf("got %d checks of the database, want 56 or more, one every 20 seconds", s.checks)
				}
			})
		})
	}
}

// TestAskedProbeSearches, because someone waits for the result.
func TestAskedProbeSearches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{}
		p := NewProber(&graphiti.Memory{Searcher: s, Connection: s}, func() bool { return true }, func(context.Context) (int, error) { return 0, nil }, new(atomic.Bool))
		defer p.Close()
		synctest.Wait()
		p.Ask(t.Context())
		if s.searches != 2 {
			t.Errorf("got %d searches, want 2: at the start and for the question", s.searches)
		}
	})
}

// TestGaugesOfTheMemory are those that are known.
func TestGaugesOfTheMemory(t *testing.T) {
	now := time.Now()
	for name, tc := range map[string]struct {
		m    MemoryStatus
		want map[string]bool
	}{
		"not checked":    {MemoryStatus{Backend: "graphiti"}, nil},
		"embedded":       {MemoryStatus{Backend: "embedded", Checked: &now}, nil},
		"working":        {MemoryStatus{Backend: "graphiti", Checked: &now}, map[string]bool{"graphiti_healthy": true, "search_working": true}},
		"searches fail":  {MemoryStatus{Backend: "graphiti-mcp", Checked: &now, Faults: []FaultCode{FaultSearch}}, map[string]bool{"graphiti_healthy": true, "search_working": false}},
		"out of reach":   {MemoryStatus{Backend: "graphiti", Checked: &now, Faults: []FaultCode{FaultUnreachable}}, map[string]bool{"graphiti_healthy": false}},
		"stalled worker": {MemoryStatus{Backend: "graphiti", Checked: &now, Faults: []FaultCode{FaultStalled}}, map[string]bool{"graphiti_healthy": true, "search_working": true}},
	} {
		if got := tc.m.Gauges(); !maps.Equal(got, tc.want) {
			t.Errorf("%s: got %v, want %v", name, got, tc.want)
		}
	}
}
