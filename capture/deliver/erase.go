package deliver

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

const (
	// eraseTimeout bounds one deletion in a group. The next one continues it.
	eraseTimeout = 30 * time.Second

	// maxRefusals is the most refusals to delete a whole group.
	maxRefusals = 3

	// mostErase is the longest pause between two deletions.
	mostErase = 5 * time.Minute

	// unprovenFor is how long an unverified message may still appear.
	unprovenFor = time.Hour
)

// erasing is the forgotten part of a group that Graphiti may have.
type erasing struct {
	rows     []ledger.Withdrawn
	missing  map[string]map[string]bool // names of the messages in flight that did not appear yet, by turn
	found    map[int64]time.Time        // when a message of a row was last there
	refusals int                        // answers without a deletion of the whole group
	at       time.Time                  // of the next deletion
	wait     time.Duration              // doubled
}

// whole reports whether to delete the whole group, which gets no turns meanwhile. If Graphiti
// refuses that, its episodes are deleted one by one.
func (e *erasing) whole() bool {
	return e.refusals < maxRefusals && slices.ContainsFunc(e.rows, func(w ledger.Withdrawn) bool { return w.Whole() })
}

// readWithdrawn reads the forgotten parts.
func (l *Loop) readWithdrawn(ctx context.Context) error {
	rows, err := l.o.Ledger.Withdrawn(ctx, "")
	if err != nil {
		return err
	}
	last := make(map[string]int64)
	for g, e := range l.erasing {
		last[g], e.rows = e.rows[len(e.rows)-1].ID, nil
	}
	for _, w := range rows {
		e := l.erasing[w.Group]
		if e == nil {
			e = &erasing{missing: make(map[string]map[string]bool), found: make(map[int64]time.Time)}
			l.erasing[w.Group] = e
		}
		if e.rows = append(e.rows, w); w.ID > last[w.Group] { // new
			e.at, e.wait = time.Time{}, 0
		}
	}
	maps.DeleteFunc(l.erasing, func(_ string, e *erasing) bool { return len(e.rows) == 0 })
	for _, s := range l.senders {
		s.flights = slices.DeleteFunc(s.flights, func(f *flight) bool {
			e := l.erasing[f.Group]
			if e == nil || !slices.ContainsFunc(e.rows, f.withdrawn) {
				return false
			}
			e.missing[f.Turn] = f.missing
			return true
		})
	}
	return nil
}

// withdrawn reports whether a message of the flight was forgotten.
func (f *flight) withdrawn(w ledger.Withdrawn) bool {
	return w.Turn == f.Turn || slices.ContainsFunc(f.messages, func(m graphiti.Row) bool { return graphiti.MessageID(m.Name) == w.Message })
}

// erase performs the due deletions in Graphiti, and returns the time until the next deletion.
func (l *Loop) erase(ctx context.Context, now time.Time) (wait time.Duration) {
	wait = never
	for g, e := range l.erasing {
		if !due(e.at, now, &wait) {
			continue
		}
		last := e.rows[len(e.rows)-1].ID
		err := l.eraseNow(ctx, g, e)
		if e.wait = min(2*max(e.wait, l.run.timing.FirstLook/2), l.run.timing.LastTest); err == nil {
			e.wait = min(e.wait, mostErase)
			l.worked(failing{g, rest})
		} else {
			l.failedAt(failing{g, rest}, err)
		}
		if err == nil && l.sender(g).quiet(e.rows, time.Now()) {
			err = ErrQuiet
		}
		l.mu.Lock()
		l.erased[g] = erased{last, err}
		if len(e.rows) == 0 {
			delete(l.erasing, g)
			delete(l.erased, g)
		}
		l.mu.Unlock()
		e.at = time.Now().Add(e.wait)
		wait = min(wait, e.wait)
	}
	return wait
}

// eraseNow deletes in a group, and settles rows that Graphiti can no longer show.
func (l *Loop) eraseNow(ctx context.Context, group string, e *erasing) error {
	s, before := l.senders[l.key(group)], int64(0)
	if s != nil {
		before = s.proven
	}
	var failed error
	err := l.callFor(ctx, eraseTimeout, func(ctx context.Context) error {
		if e.whole() {
			return l.o.Memory.Forget(ctx, group)
		}
		_, err := l.o.Memory.ForgetEpisodes(ctx, group, func(r *graphiti.Row) bool {
			var names []string
			for i := range e.rows {
				if meant := e.rows[i].Means(r); len(meant) > 0 {
					names, e.found[e.rows[i].ID] = append(names, meant...), time.Now()
				}
			}
			for _, missing := range e.missing {
				delete(missing, r.Name)
			}
			if len(names) == 0 {
				return false
			}
			has, err := l.o.Ledger.Has(ctx, group, names) // such as a text that was promoted again
			if err != nil {
				failed = err
			}
			return !has && err == nil
		})
		return err
	})
	var status *graphiti.StatusError
	var remains *graphiti.RemainsError
	if errors.As(err, &status) || errors.As(err, &remains) {
		e.refusals++
	}
	if err = cmp.Or(err, failed); err != nil {
		return err
	}
	var settled []ledger.Withdrawn
	left := e.rows[:0:0]
	for _, w := range e.rows {
		if l.settled(e, &w, before) {
			settled = append(settled, w)
		} else {
			left = append(left, w)
		}
	}
	e.rows = left
	if len(settled) > 0 {
		l.note(func() error { return l.o.Ledger.Settle(settled) })
	}
	return nil
}

// settled reports whether Graphiti can no longer show a row: all of its messages appeared and are
// deleted, or a later turn of the same worker is listed.
func (l *Loop) settled(e *erasing, w *ledger.Withdrawn, proven int64) bool {
	missing, known := e.missing[w.Turn]
	found, was := e.found[w.ID]
	return w.Sent == 0 || w.Sent < proven || w.Turn != "" && known && len(missing) == 0 ||
		was && time.Since(found) > l.run.timing.Silence || !l.confirms() && time.Since(time.UnixMicro(w.Sent)) > unprovenFor
}

// key returns the key of a group's sender.
func (l *Loop) key(group string) string {
	if l.apart() {
		return group
	}
	return ""
}

// ErrQuiet means that all of a forgotten part that Graphiti shows is deleted, and that its worker is
// silent: it may have lost the rest.
var ErrQuiet = errors.New("the worker is silent")

// quiet reports whether the worker is silent since it got the last one of some messages.
func (s *sender) quiet(rows []ledger.Withdrawn, now time.Time) bool {
	since := s.sign
	for i := range rows {
		if at := time.UnixMicro(rows[i].Sent); at.After(since) {
			since = at
		}
	}
	return now.Sub(since) > s.patience()
}

// erased is the result of a deletion in a group.
type erased struct {
	last int64 // ID of the newest forgotten part
	err  error
}

// Erased returns the error of the last deletion in Graphiti if it included the forgotten part with
// an ID.
func (l *Loop) Erased(group string, id int64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := l.erased[group]; e.last >= id {
		return e.err
	}
	return nil
}
