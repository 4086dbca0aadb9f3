package capture

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/graphititest"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/mcp"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/remote"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/rest"
)

// BenchmarkDrain is the time from the first turn of a backlog to the last one
// seen in a Graphiti whose one worker takes a while for each message.
func BenchmarkDrain(b *testing.B) {
	for _, tc := range []struct {
		mcp           graphititest.Age
		takes         time.Duration
		turns, groups int
	}{
		{graphititest.NoMCP, 0, 2000, 1},
		{graphititest.NoMCP, 0, 2000, 20},
		{graphititest.NoMCP, 10 * time.Millisecond, 200, 1},
		{graphititest.NoMCP, 10 * time.Millisecond, 200, 20},
		{graphititest.NoMCP, 10 * time.Millisecond, 400, 200},
		{graphititest.NoMCP, time.Second, 25, 1},
		{graphititest.NoMCP, time.Second, 25, 5},
		{graphititest.Today, 0, 500, 20},
		{graphititest.Today, 10 * time.Millisecond, 500, 20},
	} {
		kind := map[graphititest.Age]string{graphititest.NoMCP: "rest", graphititest.Today: "mcp"}[tc.mcp]
		b.Run(fmt.Sprintf("%s/%v/%d turns/%d groups", kind, tc.takes, tc.turns, tc.groups), func(b *testing.B) {
			s, err := graphititest.Start(graphititest.Options{Delay: tc.takes, MCP: tc.mcp})
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			var m Memory
			if tc.mcp == graphititest.NoMCP {
				r, err := rest.New(remote.Options{Endpoint: s.URL()})
				if err != nil {
					b.Fatal(err)
				}
				defer r.Close()
				m = r
			} else {
				c, err := mcp.New(remote.Options{Endpoint: s.URL()})
				if err != nil {
					b.Fatal(err)
				}
				defer c.Close()
				m = c
			}
			path := filepath.Join(b.TempDir(), "spool.db")
			p := pipeline(b, path, m, func(o *Options) {
				o.Timeout, o.StallAfter = 10*time.Second, 5*time.Minute
			})
			var turns []ledger.Turn
			for i := range tc.turns {
				turns = append(turns, spoken(fmt.Sprint(i), fmt.Sprint("g", i%tc.groups)))
			}
			begun := time.Now()
			if _, err := p.AddAll(context.Background(), turns); err != nil {
				b.Fatal(err)
			}
			waitFor(b, "delivery", func() bool { return p.Status().Verified == tc.turns })
			took := time.Since(begun)
			calls := s.Counts().Calls
			b.ReportMetric(float64(tc.turns)/took.Seconds(), "turns/s")
			b.ReportMetric(float64(calls[graphititest.Episodes]+calls[graphititest.Tool("get_episodes")])/float64(tc.turns), "looks/turn")
			b.ReportMetric(took.Seconds(), "s")
		})
	}
}
