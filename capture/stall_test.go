package capture

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

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

// TestRecoveryWithDefaultTiming checks that the waiting turns are stored within 15 seconds, once
// each, after a restart that refused no connection (REST), or after the search fails no longer (MCP).
func TestRecoveryWithDefaultTiming(t *testing.T) {
	for _, apart := range []bool{false, true} {
		for _, outage := range []time.Duration{time.Minute, 2 * time.Minute} {
			t.Run(fmt.Sprintf("apart: %v, %v", apart, outage), func(t *testing.T) {
				broken := false
				g := &graph{apart: apart, takes: 500 * time.Millisecond, raises: func(string) bool { return broken }}
				g.fails = func(call, _ string) error {
					if broken && apart && call == "search" {
						return &graphiti.StatusError{Code: 500, Detail: "Error code: 429"}
					}
					return nil
				}
				inBubble(t, g, func(t *testing.T, p *Pipeline, _ *logged) {
					add(t, p, spoken("1", "a"))
					until(t, "the first turn", func() bool { return p.Status().Verified == 1 })
					g.set(func() { broken = true })
					add(t, p, spoken("2", "a"))
					add(t, p, spoken("3", "a"))
					time.Sleep(outage)
					want := map[bool]graphiti.Diagnosis{false: graphiti.WorkerDead, true: graphiti.ModelLimit}[apart]
					if st := p.Status(); st.Diagnosis != want {
						t.Errorf("got %+v during the outage, want Diagnosis %q", st, want)
					}
					g.set(func() { broken = false })
					if !apart {
						g.restart()
					}
					back := time.Now()
					until(t, "the waiting turns", func() bool { return p.Status().Pending == 0 })
					if took := time.Since(back); took > 15*time.Second {
						t.Errorf("stored %v after the return, want at most 15 s", took)
					}
					for _, turn := range []string{"2", "3"} {
						if n := g.times("a", turn); n != 1 {
							t.Errorf("turn %s is there %d times, want once", turn, n)
						}
					}
				})
			})
		}
	}
}
