package embedded

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/internal/helptest"
)

// otherFacts is a Graphiti with some facts, which it lists in this order.
type otherFacts struct {
	graphiti.Searcher
	graphiti.Arrivals
	list     []graphiti.Fact
	episodes []graphiti.Row
	dated    bool // it selects dates
	err      error
	narrow   bool // a search for more than 18 facts fails
	copied   bool // a copy of it works
}

func (f *otherFacts) Search(_ context.Context, _ []string, _ string, most int) ([]graphiti.Fact, error) {
	if !f.copied {
		return nil, errors.New("503")
	}
	return slices.Clone(f.list[:min(most, len(f.list))]), nil
}

func (f *otherFacts) SearchDated(_ context.Context, _, _ string, most int, d graphiti.Dates) (out []graphiti.Fact, err error) {
	for _, fact := range f.list {
		if !f.dated || !fact.ValidAt.Before(d.ValidAfter) && (d.ValidBefore.IsZero() || !fact.ValidAt.After(d.ValidBefore)) && (d.InvalidAfter.IsZero() || !fact.InvalidAt.Before(d.InvalidAfter)) {
			out = append(out, fact)
		}
	}
	if f.narrow && most > 18 {
		return nil, context.DeadlineExceeded
	}
	return out[:min(most, len(out))], f.err
}

func (f *otherFacts) Episodes(context.Context, string, int) ([]graphiti.Row, error) {
	return f.episodes, nil
}

// TestOthers_Crowd checks that fifty chats at once get the answers of a fast Graphiti in time. A slow one gets
// no search after its deadline, because it would delay those of later turns.
func TestOthers_Crowd(t *testing.T) {
	for _, tc := range []struct {
		name           string
		takes          time.Duration
		late, searches int
	}{
		{"fast", 20 * time.Millisecond, 0, 50},
		{"slow", 5 * time.Second, 50, atOnce},
	} {
		t.Run(tc.name, func(t *testing.T) {
			e := openEmbedded(t)
			path := filepath.Join(t.TempDir(), "others.db")
			synctest.Test(t, func(t *testing.T) {
				graph := &countedFacts{takes: tc.takes}
				o := e.OpenOthers(path, &graphiti.Memory{Searcher: graph, Arrivals: graph}, slog.New(slog.DiscardHandler))
				defer o.Close()
				o.Add([]graphiti.Target{{Scope: graphiti.ScopeWorkspace, Group: "theirs"}})
				by := time.Now().Add(750 * time.Millisecond)
				var waiting []<-chan error
				for range 50 {
					answered, _ := o.ask(by, "theirs", "the port", 18)
					waiting = append(waiting, answered)
				}
				late := 0
				for _, answered := range waiting {
					if err := <-answered; err != nil || time.Now().After(by) {
						late++
					}
				}
				if n := int(graph.asked.Load()); late != tc.late || n != tc.searches {
					t.Errorf("%d of 50 late, %d searches; want %d, %d", late, n, tc.late, tc.searches)
				}
			})
		})
	}
}

// countedFacts counts its searches.
type countedFacts struct {
	otherFacts
	asked atomic.Int32
	takes time.Duration
}

func (f *countedFacts) SearchDated(ctx context.Context, _, _ string, _ int, _ graphiti.Dates) ([]graphiti.Fact, error) {
	f.asked.Add(1)
	select {
	case <-time.After(f.takes):
	case <-ctx.Done():
	}
	return nil, ctx.Err()
}

// TestOthers_WithoutWaiting checks that no search waits for Graphiti after Set(ask, false), and that
// its late answer serves the next one.
func TestOthers_WithoutWaiting(t *testing.T) {
	t.Parallel()
	e := openEmbedded(t)
	graph := &slowFacts{otherFacts{list: []graphiti.Fact{{UUID: "f1", Text: "The archive server of Borealis listens on port 8001", ValidAt: time.Now()}}}, make(chan struct{})}
	o := e.OpenOthers(filepath.Join(t.TempDir(), "others.db"), &graphiti.Memory{Searcher: graph, Arrivals: graph}, slog.New(slog.DiscardHandler))
	defer o.Close()
	o.Add([]graphiti.Target{{Scope: graphiti.ScopeWorkspace, Group: "theirs"}})
	o.Set(true, false)
	search := func() int {
		found, err := o.Search(t.Context(), []string{"theirs"}, "On which port does the archive server of Borealis listen?", 18)
		must(t, err)
		return len(found)
	}
	if n := search(); n != 0 {
		t.Errorf("found %d facts before Graphiti's answer, want none", n)
	}
	close(graph.answer)
	o.asking.Wait()
	if n := search(); n != 1 {
		t.Errorf("found %d facts after Graphiti's answer, want 1", n)
	}
}

// TestOthers_Waits checks that a question waits for Graphiti, though earlier answers have a weak match, or
// it is about the past and they have the valid fact; and that it gets this match if Graphiti fails or is too
// slow.
func TestOthers_Waits(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		asked string
		err   error
		slow  bool
		want  string
	}{
		{"the past", "Who was the previous coach?", nil, false, "f1"},
		{"the past, failed", "Who was the previous coach?", errors.New("503"), false, "f2"},
		{"the past, too slow", "Who was the previous coach?", nil, true, "f2"},
		{"a weak match", "On which port does the staging database listen?", nil, false, "f4"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			e := openEmbedded(t)
			day := time.Now().AddDate(0, 0, -10)
			old := graphiti.Fact{UUID: "f1", Text: "The coach is Ilse.", ValidAt: day.AddDate(0, 0, -10), InvalidAt: day}
			graph := &slowFacts{otherFacts{list: []graphiti.Fact{{UUID: "f2", Text: "The coach is Marek.", ValidAt: day}, {UUID: "f3", Text: "The staging cluster has twelve machines.", ValidAt: day}}}, make(chan struct{})}
			close(graph.answer)
			o := e.OpenOthers(filepath.Join(t.TempDir(), "others.db"), &graphiti.Memory{Searcher: graph, Arrivals: graph}, slog.New(slog.DiscardHandler))
			defer o.Close()
			o.Add([]graphiti.Target{{Scope: graphiti.ScopeWorkspace, Group: "theirs"}})
			must(t, helptest.ErrorOf(o.Search(t.Context(), []string{"theirs"}, "Who is the coach?", 18)))
			o.asking.Wait()
			graph.list, graph.err = append(graph.list, old, graphiti.Fact{UUID: "f4", Text: "The staging database listens on port 7654.", ValidAt: day}), tc.err
			if tc.slow {
				graph.answer = make(chan struct{})
				defer close(graph.answer)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			found, err := o.Search(ctx, []string{"theirs"}, tc.asked, 18)
			must(t, ctx.Err())
			must(t, err)
			if !slices.ContainsFunc(found, func(f graphiti.Fact) bool { return f.UUID == tc.want }) {
				t.Errorf("%s is missing in %+v", tc.want, found)
			}
		})
	}
}

// TestOthers_Copy checks that the first question finds the valid fact after many ended ones in a copy of its
// group, also of one that was dropped, while Graphiti answers no question; and that a group is not copied in part.
func TestOthers_Copy(t *testing.T) {
	t.Parallel()
	for ended, want := range map[int]string{100: "f100", 450: ""} {
		e := openEmbedded(t)
		graph := &slowFacts{otherFacts{copied: true}, make(chan struct{})}
		at := time.Now().Add(-time.Duration(ended) * time.Hour)
		for i := range ended + 1 {
			f := graphiti.Fact{UUID: fmt.Sprint("f", i), Text: fmt.Sprintf("The archive server of Borealis listens on port %d", 8000+i), ValidAt: at.Add(time.Duration(i-1) * time.Hour)}
			if i < ended {
				f.InvalidAt = f.ValidAt.Add(time.Hour)
			}
			graph.list = append([]graphiti.Fact{f}, graph.list...)
		}
		o := e.OpenOthers(filepath.Join(t.TempDir(), "others.db"), &graphiti.Memory{Searcher: graph, Arrivals: graph}, slog.New(slog.DiscardHandler))
		defer o.Close()
		defer close(graph.answer)
		o.Add([]graphiti.Target{{Scope: graphiti.ScopeWorkspace, Group: "theirs"}})
		for _, when := range []string{"at first", "after the copy was dropped"} {
			o.asking.Wait()
			o.Set(false, false)
			found, err := o.Search(t.Context(), []string{"theirs"}, "On which port does the archive server of Borealis listen?", 18)
			must(t, err)
			if want != "" {
				found = slices.DeleteFunc(found, func(f graphiti.Fact) bool { return f.IsOver(time.Now()) })
			}
			if (len(found) > 0) != (want != "") || want != "" && found[0].UUID != want {
				t.Errorf("%d ended ones, %s: got %+v, want %q", ended, when, found, want)
			}
			o.Set(true, false)
			o.mu.Lock()
			if h := o.facts["theirs"]; h != nil {
				h.since = time.Time{}
				must(t, o.ready(t.Context(), "theirs"))
			}
			o.mu.Unlock()
		}
	}
}

// slowFacts answers questions after answer is closed.
type slowFacts struct {
	otherFacts
	answer chan struct{}
}

func (f *slowFacts) SearchDated(ctx context.Context, group, query string, most int, d graphiti.Dates) ([]graphiti.Fact, error) {
	<-f.answer
	return f.otherFacts.SearchDated(ctx, group, query, most, d)
}

// TestOthers checks that a question about another program's group gets the valid fact after any number of
// ended facts, but no fact of an incomplete list. It gets an ended fact only for a question about its time.
// A fact that a later episode repeats replaces the fact between them.
func TestOthers(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 5, 12, 0, 0, 0, time.Local)
	day := func(n int) time.Time { return start.AddDate(0, 0, n) }
	fact := func(n, from, until int, episodes ...string) graphiti.Fact {
		f := graphiti.Fact{UUID: fmt.Sprint("f", n), Text: fmt.Sprintf("The archive server of Borealis listens on port %d", 8000+n), ValidAt: day(from), Episodes: episodes}
		if until > 0 {
			f.InvalidAt, f.ExpiredAt = day(until), time.Now()
		}
		return f
	}
	many := func(n int) (list []graphiti.Fact) {
		for i := range n {
			list = append(list, fact(i, i, i+1))
		}
		return append(list, fact(n, n, 0))
	}
	latest := many(100)
	slices.Reverse(latest[:100])
	back := []graphiti.Fact{fact(1, 1, 2, "e1", "e3"), fact(2, 2, 0, "e2")}
	said := []graphiti.Row{{Key: "e1", Said: day(1)}, {Key: "e2", Said: day(2)}, {Key: "e3", Said: day(3)}}
	var moves []graphiti.Fact
	for n, text := range []string{"The office is in Bergen.", "The office is in Graz.", "The office is in Porto.", "The staging port is 6543.", "The coach is Marek."} {
		f := fact(n+1, n+1, (n+2)*int(bit(n < 2)))
		f.Text = text
		moves = append(moves, f)
	}
	const now = "On which port does the archive server of Borealis listen?"
	for _, tc := range []struct {
		name  string
		asked string
		graph otherFacts
		want  []string
	}{
		{"24 that are over", now, otherFacts{list: many(24), dated: true}, []string{"f24"}},
		{"50 that are over", now, otherFacts{list: many(50), dated: true}, []string{"f50"}},
		{"100 that are over", now, otherFacts{list: many(100), dated: true}, []string{"f100"}},
		{"100 that are over, a server without dates", now, otherFacts{list: many(100)}, []string{"f100"}},
		{"100 that are over, the latest first", now, otherFacts{list: latest}, []string{"f100"}},
		{"a list that stays cut", now, otherFacts{list: append([]graphiti.Fact{fact(200, 1, 0)}, many(100)...), narrow: true}, nil},
		{"ended ones fill the widest list", now, otherFacts{list: append([]graphiti.Fact{fact(900, 200, 0)}, slices.Repeat(many(100)[:100], 5)...)}, nil},
		{"a value that comes back", now, otherFacts{list: back, episodes: said}, []string{"f1"}},
		{"a value that does not come back", now, otherFacts{list: back, episodes: said[:2]}, []string{"f2"}},
		{"before a value", "Where was the office before Porto?", otherFacts{list: moves, dated: true}, []string{"f2", "f3"}},
		{"a day of the past", "On which port did the archive server of Borealis listen on 2026-01-07?", otherFacts{list: many(50), dated: true}, []string{"f2", "f1"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			e := openEmbedded(t)
			o := e.OpenOthers(filepath.Join(t.TempDir(), "others.db"), &graphiti.Memory{Searcher: &tc.graph, Arrivals: &tc.graph}, slog.New(slog.DiscardHandler))
			defer o.Close()
			o.Add([]graphiti.Target{{Scope: graphiti.ScopeWorkspace, Group: "theirs"}})
			found, err := o.Search(t.Context(), []string{"theirs"}, tc.asked, 18)
			if tc.want == nil {
				found, err = o.find(t.Context(), "theirs", tc.asked, 18) // the result of a later question
			}
			must(t, err)
			var got []string
			for i := range found {
				if found[i].Past || !found[i].IsOver(time.Now()) {
					got = append(got, found[i].UUID)
				}
			}
			for _, uuid := range tc.want {
				if !slices.Contains(got, uuid) {
					t.Errorf("%s is missing in %v", uuid, got)
				}
			}
			if len(tc.want) <= 1 {
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			}
		})
	}
}
