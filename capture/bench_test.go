package capture

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/graphititest"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/remote"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/rest"
)

// typical returns a turn of usual size: 200 characters of the user, 1,200 of the answer.
func typical(i int, group string) ledger.Turn {
	return ledger.Turn{
		ID: fmt.Sprintf("%032x", i), Session: "session:1", Client: "openai-js", Said: time.Now(), Answered: time.Now(),
		User: fmt.Sprint(i, strings.Repeat(" word", 40)), Assistant: fmt.Sprint(i, strings.Repeat(" answer", 170)),
		Targets: []graphiti.Target{{Scope: graphiti.ScopeUser, Group: group}},
	}
}

// BenchmarkTurn measures how long it takes to store a turn durably in the embedded memory.
func BenchmarkTurn(b *testing.B) {
	for _, writers := range []int{1, 16} {
		b.Run(fmt.Sprintf("%d writers", writers), func(b *testing.B) {
			p, _ := embeddedPipeline(b, filepath.Join(b.TempDir(), "memory.db"))
			var n atomic.Int64
			b.ReportAllocs()
			b.SetParallelism(max(1, writers/runtime.GOMAXPROCS(0)))
			if writers == 1 {
				for b.Loop() {
					add(b, p, typical(int(n.Add(1)), "g"))
				}
				return
			}
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					i := n.Add(1)
					add(b, p, typical(int(i), fmt.Sprint("g", i%16)))
				}
			})
		})
	}
}

// stuck is a memory that is down.
type stuck struct{ fakeMemory }

func (*stuck) Write(context.Context, string, []graphiti.Row) error {
	return &graphiti.StatusError{Code: 503, RetryAfter: time.Hour}
}

// BenchmarkSpool measures the throughput of the spool with one writer, and with many that
// share commits.
func BenchmarkSpool(b *testing.B) {
	for _, writers := range []int{1, 64} {
		b.Run(fmt.Sprintf("%d writers", writers), func(b *testing.B) {
			p := pipeline(b, filepath.Join(b.TempDir(), "spool.db"), &stuck{})
			var n atomic.Int64
			b.ReportAllocs()
			b.SetParallelism(max(1, writers/runtime.GOMAXPROCS(0)))
			if writers == 1 {
				for b.Loop() {
					add(b, p, typical(int(n.Add(1)), "g"))
				}
				return
			}
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					add(b, p, typical(int(n.Add(1)), "g"))
				}
			})
		})
	}
}

// BenchmarkDelivery measures the throughput from the spool into a memory that answers at
// once over HTTP.
func BenchmarkDelivery(b *testing.B) {
	s, err := graphititest.Start(graphititest.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	m, err := rest.New(remote.Options{Endpoint: s.URL()})
	if err != nil {
		b.Fatal(err)
	}
	defer m.Close()
	path := filepath.Join(b.TempDir(), "spool.db")
	fill(b, path, b.N, 20)
	b.ResetTimer()
	p := pipeline(b, path, m)
	for p.Status().Delivered < b.N {
		time.Sleep(time.Millisecond)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "turns/s")
}

// fill creates a spool with n turns, spread over groups.
func fill(b *testing.B, path string, n, groups int) {
	b.Helper()
	s := openLedger(b, path)
	const batch = 1000
	for i := 0; i < n; i += batch {
		var turns []ledger.Turn
		for j := i; j < min(i+batch, n); j++ {
			turns = append(turns, typical(j, fmt.Sprint("g", j%groups)))
		}
		if _, err := s.Add(context.Background(), turns, time.Now()); err != nil {
			b.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkBacklog opens a spool with 100,000 turns and drains it into a memory that
// answers at once. It reports the largest growth of the heap.
func BenchmarkBacklog(b *testing.B) {
	const turns = 100_000
	for _, groups := range []int{10, 20_000} {
		b.Run(fmt.Sprintf("%d groups", groups), func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				path := filepath.Join(b.TempDir(), "spool.db")
				fill(b, path, turns, groups)
				runtime.GC()
				before := heapNow()
				b.StartTimer()
				start := time.Now()
				p := pipeline(b, path, sink{last: make(map[string][]graphiti.Row)})
				b.ReportMetric(time.Since(start).Seconds(), "open-s")
				most := uint64(0)
				for p.Status().Delivered < turns {
					time.Sleep(20 * time.Millisecond)
					runtime.GC()
					most = max(most, heapNow()-min(before, heapNow()))
				}
				b.ReportMetric(time.Since(start).Seconds(), "drain-s")
				b.ReportMetric(float64(most)/1e6, "heap-MB")
				stop(b, p)
			}
		})
	}
}

// sink is a memory that stores everything at once, and lists the last turn of a group.
type sink struct {
	last map[string][]graphiti.Row // only the delivery's goroutine calls
}

func (s sink) Write(_ context.Context, group string, messages []graphiti.Row) error {
	s.last[group] = messages
	return nil
}

func (s sink) Episodes(_ context.Context, group string, _ int) ([]graphiti.Row, error) {
	return s.last[group], nil
}
func (sink) Forget(context.Context, string) error { return nil }
func (sink) Health(context.Context) error         { return nil }
func (sink) Apart() bool                          { return false }

func (sink) Search(context.Context, []string, string, int) ([]graphiti.Fact, error) {
	return nil, nil
}

func (sink) ForgetEpisodes(context.Context, string, func(*graphiti.Row) bool) ([]string, error) {
	return nil, nil
}

func heapNow() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
