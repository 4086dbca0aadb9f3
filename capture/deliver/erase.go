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

	// mostErase is the longest pause between two deletions.
	mostErase = 5 * time.Minute
)

// ErrQuiet means that all of a forgotten part that Graphiti shows is deleted, and that its worker is
// silent: it may have lost the rest.
var ErrQuiet = errors.New("the worker is silent")

// erasing is the forgotten part of a group that Graphiti may have.
type erasing struct {
	rows  []ledger.Withdrawn
	last  int64               // ID of the newest row
	found map[int64]time.Time // when a message of a row was last there
	at    time.Time           // of the next deletion
	wait  time.Duration       // doubled
	err   error               // of the last deletion since the newest row
}

// readWithdrawn reads the forgotten parts.
func (l *Loop) readWithdrawn(ctx context.Context) error {
	rows, err := l.o.Ledger.Withdrawn(ctx, "")
	if err != nil {
		return err
	}
	for _, e := range l.erasing {
		e.rows = nil
	}
	for _, w := range rows {
		e := l.erasing[w.Group]
		if e == nil {
			e = &erasing{found: make(map[int64]time.Time)}
			l.erasing[w.Group] = e
		}
		if e.rows = append(e.rows, w); w.ID > e.last { // new
			e.last, e.at, e.wait, e.err = w.ID, time.Time{}, firstLook/2, nil
		}
	}
	maps.DeleteFunc(l.erasing, func(_ string, e *erasing) bool { return len(e.rows) == 0 })
	return nil
}

// erase deletes in a group of Graphiti, and returns the time until the next deletion. It settles the rows
// that Graphiti can no longer show: the worker has processed everything sent until then, or a message of
// the row appeared and is deleted.
func (l *Loop) erase(ctx context.Context, group string, e *erasing) (wait time.Duration, err error) {
	s := l.sender(group)
	e.err = l.eraseNow(ctx, group, e)
	l.report(failing{group, true}, e.err)
	if e.wait = min(2*e.wait, mostErase); e.err == nil {
		var settled []ledger.Withdrawn
		since := s.sign
		e.rows = slices.DeleteFunc(e.rows, func(w ledger.Withdrawn) bool {
			found, was := e.found[w.ID]
			if w.Sent <= s.proven || was && time.Since(found) > l.silence() {
				settled = append(settled, w)
				return true
			}
			since = slices.MaxFunc([]time.Time{since, time.UnixMicro(w.Sent)}, time.Time.Compare)
			return false
		})
		switch {
		case len(e.rows) == 0:
			delete(l.erasing, group)
			s.waits = true // else its silence would not end
		case !s.silent.IsZero() || time.Since(since) > l.patience(s):
			e.err = ErrQuiet
		}
		if len(settled) > 0 {
			err = l.o.Ledger.Settle(settled)
		}
	}
	return e.wait, err
}

// eraseNow deletes in a group. Other turns of a deleted episode are sent again.
func (l *Loop) eraseNow(ctx context.Context, group string, e *erasing) error {
	var failed error
	var again []string
	meant := func(r *graphiti.Row) bool {
		var names []string
		for i := range e.rows {
			if meant := e.rows[i].Means(r); len(meant) > 0 {
				names, e.found[e.rows[i].ID] = append(names, meant...), time.Now()
			}
		}
		if len(names) == 0 {
			return false
		}
		has, err := l.o.Ledger.Has(ctx, group, names) // such as a text that was promoted again
		if failed = cmp.Or(failed, err); has || err != nil {
			return false
		}
		if sides := r.Sides(); sides[0].Turn != sides[len(sides)-1].Turn {
			for i := range sides {
				turn, _ := graphiti.TurnOf(sides[i].Name)
				again = append(again, turn)
			}
		}
		return true
	}
	err := l.call(ctx, eraseTimeout, func(ctx context.Context) error {
		if slices.ContainsFunc(e.rows, func(w ledger.Withdrawn) bool { return w.Whole() }) {
			return l.o.Memory.Forget(ctx, group)
		}
		_, err := l.o.Memory.ForgetEpisodes(ctx, group, meant)
		return err
	})
	if err == nil && len(again) > 0 {
		failed = cmp.Or(failed, l.o.Ledger.Again(group, again))
	}
	return cmp.Or(err, failed)
}

// Erased returns the error of the last deletion in Graphiti if it included the forgotten part with
// an ID.
func (l *Loop) Erased(group string, id int64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := l.erasing[group]; e != nil && e.last >= id {
		return e.err
	}
	return nil
}
