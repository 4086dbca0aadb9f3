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
