package capture

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// graph is a Graphiti for tests with their own clock. Accepted messages wait in memory for
// its one worker, which an exception ends silently.
type graph struct {
	mu      sync.Mutex // guards the fields below
	takes   time.Duration
	raises  func(content string) bool
	refuses func(content string) bool
	unclear func(content string) bool      // the call stores no message and returns no clear answer
	fails   func(call, group string) error // error of the next call

	queue   []accepted // each with the time at which the worker has stored it
	dead    bool
	apart   bool // as over MCP: groups are independent, and an exception ends no worker
	kept    []accepted
	batches [][]string // names, by call of Write
	looks   int
	healthy int // calls of Health
}

type accepted struct {
	group string
	m     graphiti.Row
	at    time.Time
}

// work lets the worker catch up with the current time.
func (g *graph) work() {
	for len(g.queue) > 0 && !g.dead && !g.queue[0].at.After(time.Now()) {
		next := g.queue[0]
		g.queue = g.queue[1:]
		if g.raises != nil && g.raises(next.m.Text) {
			if g.apart {
				continue
			}
			g.dead = true
			break
		}
		g.kept = append(g.kept, next)
	}
}

func (g *graph) asked(call, group string) error {
	if g.fails == nil {
		return nil
	}
	return g.fails(call, group)
}

func (g *graph) Write(_ context.Context, group string, messages []graphiti.Row) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.work()
	if err := g.asked("write", group); err != nil {
		return err
	}
	for _, m := range messages {
		if g.refuses != nil && g.refuses(m.Text) {
			return &graphiti.StatusError{Code: 422}
		}
		if g.unclear != nil && g.unclear(m.Text) {
			return &graphiti.StatusError{Code: 500}
		}
	}
	at := time.Now()
	if n := len(g.queue); n > 0 {
		at = g.queue[n-1].at
	}
	var names []string
	for _, m := range messages {
		at = at.Add(g.takes)
		g.queue = append(g.queue, accepted{group, m, at})
		names = append(names, m.Name)
	}
	g.batches = append(g.batches, names)
	return nil
}

func (g *graph) Episodes(_ context.Context, group string, n int) (list []graphiti.Row, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.work()
	g.looks++
	if err := g.asked("episodes", group); err != nil {
		return nil, err
	}
	for _, a := range g.kept {
		if a.group == group {
			list = append(list, graphiti.Row{Name: a.m.Name, Group: group, Said: a.m.Said})
		}
	}
	slices.SortStableFunc(list, func(a, b graphiti.Row) int { return a.Said.Compare(b.Said) })
	return list[max(0, len(list)-n):], nil
}

func (g *graph) Forget(_ context.Context, group string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.work()
	g.kept = slices.DeleteFunc(g.kept, func(a accepted) bool { return a.group == group })
	return nil
}

func (g *graph) ForgetEpisodes(_ context.Context, group string, meant func(*graphiti.Row) bool) (gone []string, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.work()
	g.kept = slices.DeleteFunc(g.kept, func(a accepted) bool {
		if a.group != group || !meant(&graphiti.Row{Name: a.m.Name, Group: group, Said: a.m.Said}) {
			return false
		}
		gone = append(gone, a.m.Name)
		return true
	})
	return gone, nil
}

func (g *graph) Health(context.Context) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.healthy++
	return g.asked("health", "")
}

func (g *graph) Apart() bool { return g.apart }

// Search finds nothing.
func (g *graph) Search(_ context.Context, groups []string, _ string, _ int) ([]graphiti.Fact, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return nil, g.asked("search", groups[0])
}

// restart drops the queue and revives the worker.
func (g *graph) restart() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.work()
	g.queue, g.dead = nil, false
}

// holds returns how often a group holds an episode.
func (g *graph) holds(group, name string) (n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.work()
	for _, a := range g.kept {
		if a.group == group && a.m.Name == name {
			n++
		}
	}
	return n
}

func (g *graph) set(f func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	f()
}

// times returns how often a group holds the user's message of a turn.
func (g *graph) times(group, turn string) int {
	return g.holds(group, graphiti.EpisodeName(turn, graphiti.RoleUser))
}

// inBubble runs f in a synctest bubble, with a pipeline that delivers to m with the default
// timing.
func inBubble(t *testing.T, m Memory, f func(t *testing.T, p *Pipeline, log *logged), change ...func(*Options)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		log := &logged{}
		o := Options{
			Bounds:      Bounds{MaxChars: 8000, Timeout: 10 * time.Second, StallAfter: 5 * time.Minute},
			Destination: destination(t, filepath.Join(t.TempDir(), "spool.db"), m),
			Log:         slog.New(slog.NewTextHandler(log, nil)),
		}
		for _, c := range change {
			c(&o)
		}
		p, err := Open(o)
		must(t, err)
		defer stop(t, p)
		synctest.Wait()
		f(t, p, log)
	})
}

// until waits up to a day for ok to return true.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for begun := time.Now(); !ok(); time.Sleep(time.Second) {
		if time.Since(begun) > 24*time.Hour {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// logged is a log buffer.
type logged struct {
	mu sync.Mutex // guards b
	b  bytes.Buffer
}

var _ io.Writer = (*logged)(nil)

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

// lines returns the lines that contain a text.
func (l *logged) lines(text string) (out []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range strings.Split(l.b.String(), "\n") {
		if strings.Contains(line, text) {
			out = append(out, line)
		}
	}
	return out
}
