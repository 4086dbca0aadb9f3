package embedded

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cache/postgres/postgrestest"
	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// BenchmarkPostgres measures a turn in two groups with two messages each, and the search of
// another replica after it, with the slowest 5 %.
func BenchmarkPostgres(b *testing.B) {
	url := postgrestest.Start(b, "fsync=on").Database(b)
	say := func(t *ledger.Turn, scope graphiti.Scope) []graphiti.Row {
		return []graphiti.Row{
			{Name: graphiti.EpisodeName(t.ID, graphiti.RoleUser), Role: graphiti.RoleUser, Text: t.User, Said: t.Said, Source: `{"session":"s` + string(scope) + `"}`},
			{Name: graphiti.EpisodeName(t.ID, graphiti.RoleAssistant), Role: graphiti.RoleAssistant, Text: t.Assistant, Said: t.Said, Source: `{"session":"s` + string(scope) + `"}`},
		}
	}
	a, other := openShared(b, url), openShared(b, url)
	l := a.Ledger(say)
	var n atomic.Int64
	turn := func(person int) ledger.Turn {
		i := n.Add(1)
		return ledger.Turn{ID: fmt.Sprintf("%032x", i), User: fmt.Sprintf("The key number %d of hall %d is in the drawer of the clerk.", i, person), Assistant: "Noted.", Session: fmt.Sprint("session:", person), Owner: "user:o", Said: time.Now(),
			Targets: []graphiti.Target{{Group: fmt.Sprint("p", person), Scope: graphiti.ScopeWorkspace}, {Group: fmt.Sprint("u", person), Scope: graphiti.ScopeUser}}}
	}
	add := func(person int) {
		if _, err := l.Add(b.Context(), []ledger.Turn{turn(person)}, time.Now()); err != nil {
			b.Error(err)
		}
	}
	report := func(b *testing.B, name string, all []time.Duration) {
		slices.Sort(all)
		b.ReportMetric(float64(all[len(all)/2].Microseconds())/1000, name+"-p50-ms")
		b.ReportMetric(float64(all[len(all)*95/100].Microseconds())/1000, name+"-p95-ms")
	}
	b.Run("one", func(b *testing.B) {
		var turns, looks, found []time.Duration
		for b.Loop() {
			begin := time.Now()
			add(1)
			turns = append(turns, time.Since(begin))
			begin = time.Now()
			if err := other.look(b.Context(), "p1", "u1"); err != nil {
				b.Fatal(err)
			}
			looks = append(looks, time.Since(begin))
			begin = time.Now()
			if err := other.look(b.Context(), "p1", "u1"); err != nil {
				b.Fatal(err)
			}
			found = append(found, time.Since(begin))
			if _, err := other.Search(b.Context(), []string{"p1"}, "Where is the key?", 1); err != nil && !strings.Contains(err.Error(), "context") {
				b.Fatal(err)
			}
		}
		report(b, "turn", turns)
		report(b, "look-new", looks)
		report(b, "look", found)
	})
	b.Run("16", func(b *testing.B) {
		var clients sync.WaitGroup
		var left atomic.Int64
		left.Store(int64(b.N))
		begin := time.Now()
		for c := range 16 {
			clients.Go(func() {
				for left.Add(-1) >= 0 {
					if err := a.look(b.Context(), fmt.Sprint("p", c+10), fmt.Sprint("u", c+10)); err != nil {
						b.Error(err)
					}
					add(c + 10)
				}
			})
		}
		clients.Wait()
		b.ReportMetric(float64(b.N)/time.Since(begin).Seconds(), "turns/s")
	})
}
