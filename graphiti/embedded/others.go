package embedded

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

const (
	// othersFor is the age, and maxOthers the number of facts, at which the facts of another program's
	// group are dropped: it may have deleted some.
	othersFor = 24 * time.Hour
	maxOthers = 1 << 14

	// othersTimeout bounds a search in Graphiti. More than atOnce of a group at once would all be late.
	othersTimeout = 10 * time.Second
	atOnce        = 4
)

// Others searches a store and the groups that other programs have in Graphiti. It copies small
// groups and asks Graphiti in the background, and indexes the facts of its answers like messages.
// So an answer that comes too late for a turn serves the next one. It is safe for concurrent use.
type Others struct {
	*Store
	path   string
	graph  *graphiti.Memory
	log    *slog.Logger
	base   context.Context // of the searches in Graphiti
	cancel context.CancelFunc
	asking sync.WaitGroup

	// width is the number of facts of searches while no copies run: Graphiti applies the newest limit to all.
	width, copies atomic.Int32

	mu      sync.Mutex               // protects the fields below
	groups  map[string]chan struct{} // of other programs, each with room for atOnce searches
	facts   map[string]*othersFacts  // by group
	indexed *Store                   // of the facts; nil before the first one
	paused  bool                     // Graphiti is not asked
	hasty   bool                     // no search waits for Graphiti
	closed  bool
}

// othersFacts describes the facts of a group in the index.
type othersFacts struct {
	since time.Time
	count int // with repeats
}

// OpenOthers returns a search with facts of graph. path is a scratch file.
func (e *Store) OpenOthers(path string, graph *graphiti.Memory, log *slog.Logger) *Others {
	o := &Others{Store: e, path: path, graph: graph, log: log, groups: make(map[string]chan struct{}), facts: make(map[string]*othersFacts)}
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
		if o.groups[g.Group] == nil {
			o.groups[g.Group] = make(chan struct{}, atOnce)
			o.copy(g.Group)
		}
	}
}

// copy indexes a group if one search lists all of it: its questions then find their answers here, however
// slow Graphiti is. The caller holds o.mu.
func (o *Others) copy(group string) {
	o.start(time.Now().Add(othersTimeout), group, func(ctx context.Context) ([]graphiti.Fact, error) {
		o.copies.Add(1)
		defer o.copies.Add(-1)
		facts, err := o.graph.Search(ctx, []string{group}, graphiti.BroadQuery(group), graphiti.MaxSearch)
		if len(facts) == graphiti.MaxSearch {
			facts = nil
		}
		return facts, err
	})
}

// most returns the number of facts to search for.
func (o *Others) most(least int) int {
	if o.copies.Load() > 0 {
		return graphiti.MaxSearch
	}
	return max(least, int(o.width.Load()))
}

// Set changes whether Graphiti is asked, and whether a search waits for the first answer.
func (o *Others) Set(ask, wait bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.paused, o.hasty = !ask, !wait
}

func (o *Others) has(group string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.groups[group] != nil
}

// Search implements graphiti.Searcher. It waits for Graphiti unless an earlier answer has nearly all words
// of a question about the present, and never after Set(ask, false).
func (o *Others) Search(ctx context.Context, groups []string, query string, most int) ([]graphiti.Fact, error) {
	i := slices.IndexFunc(groups, o.has)
	if i < 0 {
		return o.Store.Search(ctx, groups, query, most)
	}
	now := time.Now()
	by, limited := ctx.Deadline()
	if !limited {
		by = now.Add(othersTimeout)
	}
	answered, hasty := o.ask(by, groups[i], query, most)
	found, err := o.find(ctx, groups[i], query, most)
	strong := func(f graphiti.Fact) bool { return f.Strength >= exactWords }
	if times := datesIn(firstOf(query), now); err != nil || hasty || slices.ContainsFunc(found, strong) && !times.past(now) {
		return found, err
	}
	patience, cancel := context.WithDeadline(ctx, now.Add(by.Sub(now)*7/8)) // then earlier answers are searched
	defer cancel()
	select {
	case err = <-answered:
	case <-patience.Done():
		err = patience.Err()
	}
	found, failed := o.find(ctx, groups[i], query, most)
	if len(found) > 0 || failed != nil {
		err = failed
	}
	return found, err
}

// ask searches Graphiti and indexes its answer. It returns the channel of the result, and hasty.
func (o *Others) ask(by time.Time, group, query string, most int) (answered <-chan error, hasty bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.start(by, group, func(ctx context.Context) ([]graphiti.Fact, error) { return o.live(ctx, group, query, most) }), o.hasty
}

// start searches a group and indexes the answer, if there is room by the deadline: a search after its turn would
// delay the next one. It returns the channel of the result. The caller holds o.mu.
func (o *Others) start(by time.Time, group string, search func(context.Context) ([]graphiti.Fact, error)) <-chan error {
	done := make(chan error, 1)
	if o.closed || o.paused {
		done <- context.Canceled
		return done
	}
	room := o.groups[group]
	// Ends with its call, which othersTimeout bounds and Close cancels.
	o.asking.Go(func() {
		select {
		case room <- struct{}{}:
			defer func() { <-room }()
		case <-time.After(time.Until(by)):
			done <- context.DeadlineExceeded
			return
		}
		ctx, cancel := context.WithTimeout(o.base, othersTimeout)
		defer cancel()
		facts, err := search(ctx)
		if len(facts) > 0 {
			err = errors.Join(err, o.index(ctx, group, facts, time.Now()))
		}
		if err != nil {
			o.log.Debug("search another program's group failed", "error", err)
		}
		done <- err
	})
	return done
}

// live searches Graphiti until it has most valid facts: ended ones may fill an answer and hide others, which
// began later. If that fails, it returns none. A question about the past also asks for its time.
func (o *Others) live(ctx context.Context, group, query string, most int) (facts []graphiti.Fact, err error) {
	now, last := time.Now(), time.Time{}
	for tries := 3; ; tries-- {
		n := o.most(most)
		more, err := o.graph.SearchDated(ctx, group, query, n, graphiti.Dates{ValidAfter: last})
		if err != nil {
			return nil, err
		}
		facts = append(facts, more...)
		valid := 0
		for i := range more {
			if f := &more[i]; !f.IsOver(now) {
				valid++
			} else if f.InvalidAt.After(last) {
				last = f.InvalidAt
			}
		}
		if len(more) < n || valid >= most {
			break
		}
		if tries == 1 {
			facts = nil // valid ones may be hidden
			break
		}
		o.width.Store(int32(min(graphiti.MaxSearch, 2*n*most/max(1, valid)))) // #nosec G115 -- a small number
	}
	times := datesIn(firstOf(query), now)
	for _, w := range times.windows(now) {
		more, err := o.graph.SearchDated(ctx, group, query, o.most(most), graphiti.Dates{ValidBefore: localDay(w.to), InvalidAfter: localDay(w.from)})
		if err != nil {
			return facts, err
		}
		facts = append(facts, more...)
	}
	return facts, nil
}

// localDay returns the beginning of a day of this place.
func localDay(day time.Time) time.Time {
	return time.Date(day.Year(), day.Month(), day.Day(), 0, 0, 0, 0, time.Local)
}

// lastListed is the number of episodes to list for the times of facts.
const lastListed = 200

// said returns the times of a group's episodes, if an ended fact has several: the last one may repeat
// it.
func (o *Others) said(ctx context.Context, group string, facts []graphiti.Fact, now time.Time) (times map[string]time.Time, err error) {
	if o.graph.Arrivals == nil || !slices.ContainsFunc(facts, func(f graphiti.Fact) bool { return len(f.Episodes) > 1 && f.IsOver(now) }) {
		return nil, nil
	}
	list, err := o.graph.Episodes(ctx, group, lastListed)
	times = make(map[string]time.Time, len(list))
	for _, r := range list {
		times[r.Key] = r.Said
	}
	return times, err
}

// index adds the facts of an answer, the oldest first, with their episodes as their messages.
func (o *Others) index(ctx context.Context, group string, facts []graphiti.Fact, now time.Time) error {
	said, err := o.said(ctx, group, facts, now)
	if err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := o.ready(ctx, group); err != nil {
		return err
	}
	slices.SortStableFunc(facts, func(a, b graphiti.Fact) int {
		return cmp.Or(a.ValidAt, a.CreatedAt).Compare(cmp.Or(b.ValidAt, b.CreatedAt))
	})
	var sources []graphiti.Row
	var pulled []graphiti.Distilled
	for i := range facts {
		f := &facts[i]
		d := graphiti.Distilled{Name: graphiti.PulledPrefix + f.UUID, Text: f.Text, Role: graphiti.RoleUser, Since: cmp.Or(f.ValidAt, f.CreatedAt), Made: now}
		if d.Until = f.InvalidAt; f.IsOver(now) {
			d.Until = cmp.Or(f.InvalidAt, f.ExpiredAt)
		}
		for _, source := range append([]string{d.Name}, f.Episodes...) {
			if at := cmp.Or(said[source], d.Since); source == d.Name || !at.Equal(d.Since) {
				d.Sources = append(d.Sources, source)
				sources = append(sources, graphiti.Row{Name: source, Role: graphiti.RoleUser, Text: "-", Said: at})
			}
		}
		pulled = append(pulled, d)
	}
	o.facts[group].count += len(pulled)
	// The second time, all are known: a fact with an episode after its end is valid again.
	return errors.Join(o.indexed.Write(ctx, group, sources), o.indexed.Pull(ctx, group, pulled), o.indexed.Pull(ctx, group, pulled))
}

// ready opens the scratch file, and makes room in it.
func (o *Others) ready(ctx context.Context, group string) (err error) {
	if o.indexed == nil {
		if o.indexed, err = OpenScratch(o.path); err == nil && o.ownModel() {
			o.indexed.mean = startVectors(o.indexed.db, o.mean.encoder, o.log)
		}
	}
	h := o.facts[group]
	if err == nil && h != nil && (h.count > maxOthers || time.Since(h.since) > othersFor) {
		h, err = nil, o.indexed.Forget(ctx, group)
		o.copy(group)
	}
	if h == nil {
		o.facts[group] = &othersFacts{since: time.Now()}
	}
	return err
}

// find searches the facts of a group.
func (o *Others) find(ctx context.Context, group, query string, most int) ([]graphiti.Fact, error) {
	o.mu.Lock()
	s := o.indexed
	o.mu.Unlock()
	if s == nil {
		return nil, nil
	}
	found, err := s.Search(ctx, []string{group}, query, most)
	for i := range found {
		found[i].UUID = strings.TrimPrefix(found[i].UUID, graphiti.PulledPrefix)
	}
	return found, err
}

// firstOf returns the current question of a query.
func firstOf(query string) string {
	question, _, _ := strings.Cut(query, graphiti.Earlier)
	return question
}
