package capture

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/graphititest"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/mcp"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/remote"
	"github.com/graphiti-proxy/graphiti-proxy/internal/helptest"
)

func mcpService(t *testing.T, o graphititest.Options) (*graphititest.Graphiti, *mcp.Client) {
	t.Helper()
	s, err := graphititest.Start(o)
	must(t, err)
	t.Cleanup(func() { _ = s.Close() })
	m, err := mcp.New(remote.Options{Endpoint: s.URL()})
	must(t, err)
	t.Cleanup(func() { _ = m.Close() })
	return s, m
}

// settled waits until the stand-in has processed all accepted messages.
func settled(t *testing.T, s *graphititest.Graphiti) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	must(t, s.Settle(ctx))
}

// TestMCPEveryFaultEveryTurnOnce is TestEveryFaultEveryTurnOnce over MCP. One fault is enough with the
// names of an older server's tools.
func TestMCPEveryFaultEveryTurnOnce(t *testing.T) {
	t.Parallel()
	faults := map[string]graphititest.Fault{
		"refused":           graphititest.Refuse(),
		"hangs":             graphititest.Hang(),
		"error":             graphititest.Answer(500, ""),
		"unavailable":       graphititest.Answer(503, ""),
		"too many":          graphititest.Answer(429, "0"),
		"garbage":           graphititest.Garbage(),
		"failed but stored": graphititest.FailedButStored(),
		"slow":              graphititest.Slow(1500 * time.Millisecond), // longer than the timeout
	}
	for name, fault := range faults {
		for _, age := range []graphititest.Age{graphititest.Today, graphititest.Old} {
			if age == graphititest.Old && name != "failed but stored" {
				continue
			}
			tool := map[graphititest.Age]string{graphititest.Today: "add_memory", graphititest.Old: "add_episode"}[age]
			for _, call := range []graphititest.Call{graphititest.Tool(tool), graphititest.Tool("get_episodes")} {
				t.Run(fmt.Sprintf("%s, %s", call, name), func(t *testing.T) {
					t.Parallel()
					s, m := mcpService(t, graphititest.Options{Delay: time.Millisecond, MCP: age})
					times, timeout := 3, helptest.Patience
					if name == "hangs" || name == "slow" { // not a stalled worker; further faults only take longer
						times, timeout = 1, time.Second
					}
					for range times {
						s.Next(call, fault)
					}
					arriveOnce(t, s, m, 6, timeout)
				})
			}
		}
	}
}

// TestMCPPoison checks that a message that cannot be extracted is lost alone and given up
// in the end, and that later turns and other groups are stored. The progress of fast groups
// does not prove a loss in a slow one.
func TestMCPPoison(t *testing.T) {
	t.Parallel()
	s, m := mcpService(t, graphititest.Options{
		Delay: 5 * time.Millisecond, MCP: graphititest.Today,
		Raises: func(_, content string) bool { return strings.Contains(content, "user poison") },
	})
	p := verifying(t, filepath.Join(t.TempDir(), "spool.db"), m)
	var ids []string
	for i := range 20 { // a slow group
		ids = append(ids, fmt.Sprint("slow", i))
		add(t, p, spoken(ids[i], "slow"))
	}
	add(t, p, spoken("poison", "a"))
	add(t, p, spoken("after", "a"))
	add(t, p, spoken("other", "b"))
	for i := range 2 { // each proves a loss
		waitFor(t, "the loss", func() bool { return p.Status().Lost > i })
		add(t, p, spoken(fmt.Sprint("later", i), "a"))
	}
	waitFor(t, "what can be kept", func() bool { s := p.Status(); return s.Verified == 24 && s.Dead == 1 && s.Pending == 0 })
	once(t, s, "slow", ids...)
	once(t, s, "b", "other")
	count := make(map[string]int)
	for _, e := range s.Episodes("a") {
		count[e.Name]++
	}
	if n := count[graphiti.EpisodeName("after", graphiti.RoleUser)]; n != 1 {
		t.Errorf("the turn after the poison was kept %d times", n)
	}
	if n := count[graphiti.EpisodeName("poison", graphiti.RoleAssistant)]; n != 1 {
		t.Errorf("the answer in the poisonous turn was kept %d times", n)
	}
}

// TestMCPCallThatEndsInTheMiddle checks that, after a call fails in the middle, only the
// messages that were not accepted are sent again.
func TestMCPCallThatEndsInTheMiddle(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]graphititest.Fault{
		"refused content": graphititest.Answer(422, ""), "refused": graphititest.Refuse(), "unavailable": graphititest.Answer(503, ""),
		"hangs": graphititest.Hang(), "failed but stored": graphititest.FailedButStored(),
	} {
		for at := 1; at < 6; at++ {
			t.Run(fmt.Sprintf("%s, message %d", name, at), func(t *testing.T) {
				t.Parallel()
				s, m := mcpService(t, graphititest.Options{MCP: graphititest.Today})
				s.Next(graphititest.Tool("add_memory"), append(make([]graphititest.Fault, at), fault)...)
				path := filepath.Join(t.TempDir(), "spool.db")
				sp := openLedger(t, path)
				ids := []string{"1", "2", "3", "4"}
				for _, id := range ids {
					must(t, helptest.ErrorOf(sp.Add(context.Background(), []ledger.Turn{spoken(id, "a")}, time.Now())))
				}
				must(t, sp.Close())
				p := verifying(t, path, m, func(o *Options) { o.Timeout = time.Second })
				waitFor(t, "all turns", func() bool { s := p.Status(); return s.Verified == 4 && s.Pending == 0 })
				settled(t, s)
				once(t, s, "a", ids...)
			})
		}
	}
}
