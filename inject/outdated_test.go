package inject

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// outdatedFirst is a service that ranks facts that are over before the only valid one.
type outdatedFirst struct {
	service
	over  int           // facts before the valid one
	slow  time.Duration // of a search for more than the first time
	fails bool          // such a search fails
	asked []int
}

func (s *outdatedFirst) Search(ctx context.Context, groups []string, _ string, max int) (facts []graphiti.Fact, err error) {
	if groups[0] != "u" {
		return nil, nil
	}
	if s.asked = append(s.asked, max); len(s.asked) > 1 {
		select {
		case <-time.After(s.slow):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if s.fails {
			return nil, errors.New("fails")
		}
	}
	for i := range s.over {
		facts = append(facts, graphiti.Fact{Text: fmt.Sprint("The beans were in bed ", i), InvalidAt: time.Unix(1, 0)})
	}
	facts = append(facts, graphiti.Fact{Text: "The beans grow in bed 99"})
	return facts[:min(max, len(facts))], nil
}

// TestOutdatedFactsMakeRoom: facts that are over do not keep the valid one from the block.
func TestOutdatedFactsMakeRoom(t *testing.T) {
	for _, tc := range []struct {
		name   string
		s      outdatedFirst
		asked  []int
		reason Reason
	}{
		{"few are over", outdatedFirst{over: 5}, []int{24}, ReasonNone},
		{"the first answer is over", outdatedFirst{over: 30}, []int{24, 50}, ReasonNone},
		{"the second too", outdatedFirst{over: 60}, []int{24, 50, 100}, ReasonNone},
		{"all are", outdatedFirst{over: 200}, []int{24, 50, 100}, ReasonOutdated},
		{"the second is late", outdatedFirst{over: 30, slow: time.Hour}, []int{24, 50}, ReasonOutdated},
		{"the second fails", outdatedFirst{over: 30, fails: true}, []int{24, 50}, ReasonOutdated},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &tc.s
				m := memory(t, nil, &fakeDecisions{}, &fakeFacts{})
				o := *m.opts()
				services := *o.Services
				services.Search = s
				o.Services = &services
				m.o.Store(&o)
				_, p := ask(t, m, `{"messages":[{"role":"user","content":"In which bed do the beans grow?"}]}`, both)
				if !slices.Equal(s.asked, tc.asked) || p.Outcome.Reason != tc.reason || (p.Outcome.Facts == 1) != (tc.reason == ReasonNone) {
					t.Errorf("got %+v after requests for %v, want reason %q after requests for %v", p.Outcome, s.asked, tc.reason, tc.asked)
				}
			})
		})
	}
}

// TestNewerBreaksTies: valid_at has whole seconds.
func TestNewerBreaksTies(t *testing.T) {
	at := time.Unix(1000, 0)
	old := graphiti.Fact{ValidAt: at, CreatedAt: at.Add(time.Second)}
	young := graphiti.Fact{ValidAt: at, CreatedAt: at.Add(2 * time.Second)}
	if !newer(&young, &old) || newer(&old, &young) {
		t.Errorf("got newer %v and %v, want true and false", newer(&young, &old), newer(&old, &young))
	}
}
