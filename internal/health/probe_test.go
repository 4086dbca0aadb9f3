package health

import (
	"context"
	"errors"
	"maps"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// service is a memory service that counts its calls.
type service struct {
	mu    sync.Mutex // guards the fields below
	fails failures
	calls calls
}

type failures struct{ health, search error }

type calls struct{ searches int }

// set makes calls fail from now on.
func (s *service) set(f failures) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fails = f
}

// made returns the number of calls so far.
func (s *service) made() calls {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls
}

func (s *service) Close() error { return nil }

func (s *service) Health(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fails.health
}

func (s *service) Search(context.Context, []string, string, int) ([]graphiti.Fact, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls.searches++
	return nil, s.fails.search
}

// TestSearchesOfProbes checks that a probe searches every five minutes, and at every check while
// searches fail.
func TestSearchesOfProbes(t *testing.T) {
	broken := errors.New("broken")
	for name, tc := range map[string]struct {
		fails       failures
		first, want int // searches at the start, and in the next nine checks
	}{
		"working":       {failures{}, 1, 0},
		"searches fail": {failures{search: broken}, 1, 9},
		"out of reach":  {failures{health: broken}, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &service{fails: tc.fails}
				p := NewProber(&graphiti.Memory{Searcher: s, Connection: s}, func() bool { return true })
				defer p.Close()
				passes := func(d time.Duration) int {
					before := s.made().searches
					time.Sleep(d) // of the bubble
					synctest.Wait()
					return s.made().searches - before
				}
				time.Sleep(time.Second) // of the bubble
				if synctest.Wait(); s.made().searches != tc.first {
					t.Fatalf("got %d searches at the start, want %d", s.made().searches, tc.first)
				}
				if got := passes(9 * probeEvery); got != tc.want {
					t.Errorf("got %d searches in nine checks, want %d", got, tc.want)
				}
				if failed := p.Last().Search != nil; failed != (tc.fails.search != nil) {
					t.Errorf("the last search failed: %v, want %v", failed, tc.fails.search != nil)
				}
				s.set(failures{})
				passes(2 * probeEvery)
				if got := passes(4 * searchEvery); got != 4 {
					t.Errorf("got %d searches in 20 minutes of a working service, want 4", got)
				}
			})
		})
	}
}

// TestAskedProbeSearches checks that Ask always searches, because a person waits for the
// result.
func TestAskedProbeSearches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{}
		p := NewProber(&graphiti.Memory{Searcher: s, Connection: s}, func() bool { return true })
		defer p.Close()
		synctest.Wait()
		p.Ask(t.Context())
		if n := s.made().searches; n != 2 {
			t.Errorf("got %d searches, want 2: at the start and for the question", n)
		}
	})
}

// TestGaugesOfTheMemory checks that Gauges returns only gauges with a known value.
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

// TestOneFaultDoesNotHideAnother checks that a status with a failed search and a stalled
// queue reports both faults with their remedies.
func TestOneFaultDoesNotHideAnother(t *testing.T) {
	t.Parallel()
	now := time.Now()
	m := MemoryStatus{State: StateWorking}
	m.Judge(&Probe{At: now, Search: errors.New("no such model"), Since: now.Add(-time.Minute)}, &capture.QueueStatus{Stalled: &now, Pending: 3, Diagnosis: graphiti.WorkerDead}, nil)
	if !strings.Contains(m.Why, "no such model") || !strings.Contains(m.Why, "has stored none") || !strings.Contains(m.Remedy, graphiti.WorkerDead.Remedy()) || !m.Since.Equal(now.Add(-time.Minute)) {
		t.Errorf("got %+v, want both faults with their remedies", m)
	}
}
