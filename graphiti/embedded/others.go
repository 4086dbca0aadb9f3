package embedded

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

const (
	// othersFor is how long a fact of another program's group is found without being found
	// again in Graphiti.
	othersFor = 24 * time.Hour

	// maxOthers is the most facts of other programs. Beyond it all of them are dropped.
	maxOthers = 1 << 14

	// othersTimeout bounds a search in Graphiti.
	othersTimeout = 10 * time.Second
)

// Others searches a store and the groups that other programs have in Graphiti. It asks
// Graphiti in the background, and indexes the facts of its answers like messages. So an answer
// that comes too late for a turn serves the next one. It is safe for concurrent use.
type Others struct {
	*Store
	path   string
	graph  graphiti.Searcher
	log    *slog.Logger
	base   context.Context // of the searches in Graphiti
	cancel context.CancelFunc
	asking sync.WaitGroup

	mu      sync.Mutex                 // protects the fields below
	groups  map[string]bool            // of other programs
	known   map[string]map[string]seen // facts by group and name
	indexed *Store                     // of the known facts; nil before the first one
	paused  bool                       // Graphiti is not asked
	closed  bool
}

// seen is a fact with the time of its last answer.
type seen struct {
	graphiti.Fact
	at time.Time
}

// OpenOthers returns a search with facts of graph. path is a scratch file.
func (e *Store) OpenOthers(path string, graph graphiti.Searcher, log *slog.Logger) *Others {
	o := &Others{Store: e, path: path, graph: graph, log: log, known: make(map[string]map[string]seen)}
	o.base, o.cancel = context.WithCancel(context.Background())
	return o
}

// Close ends the searches in Graphiti, and deletes the scratch file.
func (o *Others) Close() error {
	o.mu.Lock()
	o.closed = true
	o.mu.Unlock()
	o.cancel()
	o.asking.Wait()
	if o.indexed == nil {
		return nil
	}
	return o.indexed.Close()
}

// Add adds groups of other programs.
func (o *Others) Add(groups []graphiti.Target) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, g := range groups {
		if o.groups == nil {
			o.groups = make(map[string]bool)
		}
		o.groups[g.Group] = true
	}
}

// Pause stops or resumes searches in Graphiti.
func (o *Others) Pause(on bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.paused = on
}

func (o *Others) has(group string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.groups[group]
}

// Ready is Store.Ready. Only Graphiti knows whether another program's group is empty.
func (o *Others) Ready(group string) (ready, empty bool) {
	if o.has(group) {
		return true, false
	}
	return o.Store.Ready(group)
}

// Search implements graphiti.Searcher. It waits for Graphiti only if no earlier answer has a
// match.
func (o *Others) Search(ctx context.Context, groups []string, query string, most int) ([]graphiti.Fact, error) {
	i := slices.IndexFunc(groups, o.has)
	if i < 0 {
		return o.Store.Search(ctx, groups, query, most)
	}
	answered := o.ask(groups[i], query, most)
	found, err := o.find(ctx, groups[i], query, most)
	if err != nil || len(found) > 0 {
		return found, err
	}
	select {
	case err := <-answered:
		if err != nil {
			return nil, err
		}
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return o.find(ctx, groups[i], query, most)
}

// ask searches Graphiti and indexes its answer. The channel receives the result.
func (o *Others) ask(group, query string, most int) <-chan error {
	done := make(chan error, 1)
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed || o.paused {
		done <- context.Canceled
		return done
	}
	// Ends with its call, which othersTimeout bounds and Close cancels.
	o.asking.Go(func() {
		ctx, cancel := context.WithTimeout(o.base, othersTimeout)
		defer cancel()
		facts, err := o.graph.Search(ctx, []string{group}, query, most)
		if err == nil {
			err = o.index(ctx, group, facts, time.Now())
		}
		if err != nil {
			o.log.Debug("search another program's group failed", "error", err)
		}
		done <- err
	})
	return done
}

// index adds the facts of an answer.
func (o *Others) index(ctx context.Context, group string, facts []graphiti.Fact, now time.Time) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.indexed == nil {
		s, err := OpenScratch(o.path)
		if err != nil {
			return err
		}
		o.indexed = s
	}
	if len(o.known[group]) > maxOthers {
		delete(o.known, group)
		if err := o.indexed.Forget(ctx, group); err != nil {
			return err
		}
	}
	if o.known[group] == nil {
		o.known[group] = make(map[string]seen)
	}
	rows := make([]graphiti.Row, 0, len(facts))
	for _, f := range facts {
		at := f.ValidAt
		if at.IsZero() {
			at = f.CreatedAt
		}
		o.known[group][f.UUID] = seen{f, now}
		rows = append(rows, graphiti.Row{Name: f.UUID, Role: graphiti.RoleUser, Text: f.Text, Said: at})
	}
	return o.indexed.Write(ctx, group, rows)
}

// find searches the known facts of a group.
func (o *Others) find(ctx context.Context, group, query string, most int) ([]graphiti.Fact, error) {
	o.mu.Lock()
	s := o.indexed
	o.mu.Unlock()
	if s == nil {
		return nil, nil
	}
	found, err := s.Search(ctx, []string{group}, query, most)
	if err != nil {
		return nil, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	var out []graphiti.Fact
	for i := range found {
		known, ok := o.known[group][found[i].Episode]
		if ok && time.Since(known.at) < othersFor {
			known.Strength, known.Weighed = found[i].Strength, true
			out = append(out, known.Fact)
		}
	}
	return out, nil
}
