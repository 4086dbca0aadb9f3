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

// outdatedFirst is a service that ranks outdated facts before the only valid one.
type outdatedFirst struct {
	service
	over  int           // number of outdated facts
	slow  time.Duration // delay of every search after the first
	fails bool          // searches after the first fail
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

// TestOutdatedFactsMakeRoom checks that outdated facts do not displace the valid one, if a
// larger search finds it in time.
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

// TestNewerBreaksTies checks that newer compares creation times if valid_at, which has
// whole seconds, is equal.
func TestNewerBreaksTies(t *testing.T) {
	at := time.Unix(1000, 0)
	old := graphiti.Fact{ValidAt: at, CreatedAt: at.Add(time.Second)}
	young := graphiti.Fact{ValidAt: at, CreatedAt: at.Add(2 * time.Second)}
	if !newer(&young, &old) || newer(&old, &young) {
		t.Errorf("got newer %v and %v, want true and false", newer(&young, &old), newer(&old, &young))
	}
}

// TestFactsOfThePast checks that a question about the past gets the valid fact, followed by
// the newest outdated fact that was valid then. Other questions get only the valid fact.
func TestFactsOfThePast(t *testing.T) {
	now := time.Now()
	ago := func(days int) time.Time { return now.AddDate(0, 0, -days) }
	port := func(n, from, to int) graphiti.Fact {
		f := graphiti.Fact{UUID: fmt.Sprint(n, from), Text: fmt.Sprint("The staging database has moved now to port ", n), Name: "USES", Source: "a", Target: "b", ValidAt: ago(from), CreatedAt: ago(from)}
		if to > 0 {
			f.InvalidAt, f.ExpiredAt = ago(to), ago(to)
		}
		return f
	}
	withdrawn, never := port(1, 40, 0), port(2, 40, 40)
	withdrawn.ExpiredAt = ago(20)
	moves := []graphiti.Fact{withdrawn, never}
	for i := range 22 { // a month ago, two a day
		f := port(8000+i, 40-i/2, 39-i/2)
		f.CreatedAt = f.CreatedAt.Add(time.Duration(i) * time.Second)
		moves = append(moves, f)
	}
	listened := graphiti.Fact{UUID: "first", Text: "The staging database was on port 6543", ValidAt: ago(90), InvalidAt: ago(60)}
	other := graphiti.Fact{UUID: "other", Text: "Maria had the pager", ValidAt: ago(90), InvalidAt: ago(60)}
	sub := graphiti.Fact{UUID: "sub", Text: "The staging server was in Rome", ValidAt: ago(90), InvalidAt: ago(60)}
	moves = append(moves, other, sub, listened, port(8021, 29, 2), port(9000, 2, 1), port(8021, 1, 0))
	until := func(f graphiti.Fact) string {
		return f.Text + " (until " + f.InvalidAt.UTC().Format(time.DateOnly) + ")"
	}
	since := func(f graphiti.Fact) string {
		return f.Text + " (since " + f.ValidAt.Local().Format(time.DateOnly) + ")"
	}
	valid := moves[len(moves)-1]
	for _, tc := range []struct {
		name string
		days int // age of the day in question, or 0 for now
		max  int
		want []string
	}{
		{"about now", 0, 12, []string{since(valid)}},
		{"about the past", 35, 12, []string{since(valid), until(moves[2+11])}},
		{"about a value that holds again", 10, 12, []string{since(valid), until(moves[2+25])}},
		{"that resembles the question", 70, 12, []string{since(valid), until(listened)}},
		{"with room for one", 35, 1, []string{since(valid)}},
		{"about a time without a fact", 100, 12, []string{since(valid)}},
	} {
		ch := chooser{now: now, count: tc.max, max: 2000, asked: askedOf("On which port was the staging database in summer?")}
		if at := ago(tc.days); tc.days > 0 {
			ch.past = func(from, to time.Time) bool { return !at.Before(from) && at.Before(to) }
		}
		got := plainAll(lines(ch.choose([]Scoped{{Scope: graphiti.ScopeUser, Facts: moves}})))
		if !slices.Equal(got, tc.want) {
			t.Errorf("%s: got %q, want %q", tc.name, got, tc.want)
		}
		ch.visible = statementsIn([]string{blockOf(got...)})
		again := lines(ch.choose([]Scoped{{Scope: graphiti.ScopeUser, Facts: moves}}))
		if slices.ContainsFunc(again, func(l string) bool { return slices.Contains(got, l) }) {
			t.Errorf("%s, asked again: got %q, want no line of %q again", tc.name, again, got)
		}
	}
}
