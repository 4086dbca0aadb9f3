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
	quiet bool                // the worker is silent
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
			e.last, e.at, e.wait = w.ID, time.Time{}, 0
		}
	}
	maps.DeleteFunc(l.erasing, func(_ string, e *erasing) bool { return len(e.rows) == 0 })
	return nil
}

// erase performs the due deletions in Graphiti, and returns the time until the next reading.
func (l *Loop) erase(ctx context.Context) (wait time.Duration, err error) {
	wait = pollLedger
	for g, e := range l.erasing {
		if at := max(time.Until(e.at), time.Until(l.until)); at > 0 {
			wait = min(wait, at)
			continue
		}
		s := l.sender(g)
		failed := l.eraseNow(ctx, g, e)
		l.report(failing{g, true}, failed)
		if e.wait = min(2*max(e.wait, l.settings.Load().FirstLook/2), mostErase); failed == nil {
			if err := l.settle(s, e); err != nil {
				return 0, err
			}
			if e.quiet = s.quiet(e.rows, &l.settings.Load().Timing); e.quiet {
				failed = ErrQuiet
			}
		}
		e.at = time.Now().Add(e.wait)
		wait = min(wait, e.wait)
		l.erased.Store(g, erased{e.last, failed})
		if len(e.rows) == 0 {
			l.erased.Delete(g)
		}
	}
	return wait, nil
}

// eraseNow deletes in a group. Other turns of a deleted episode are sent again.
func (l *Loop) eraseNow(ctx context.Context, group string, e *erasing) error {
	var unread error
	var again []string
	err := l.call(ctx, eraseTimeout, func(ctx context.Context) error {
		if slices.ContainsFunc(e.rows, func(w ledger.Withdrawn) bool { return w.Whole() }) {
			return l.o.Memory.Forget(ctx, group)
		}
		_, err := l.o.Memory.ForgetEpisodes(ctx, group, func(r *graphiti.Row) bool {
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
			if err != nil {
				unread = err
			}
			if has || err != nil {
				return false
			}
			if sides := r.Sides(); sides[0].Turn != sides[len(sides)-1].Turn {
				for i := range sides {
					turn, _ := graphiti.TurnOf(sides[i].Name)
					again = append(again, turn)
				}
			}
			return true
		})
		return err
	})
	if err == nil && len(again) > 0 {
		unread = errors.Join(unread, l.o.Ledger.Again(group, again))
	}
	return cmp.Or(err, unread)
}

// settle settles the rows that Graphiti can no longer show: the worker has processed everything sent until
// then, or a message of the row appeared and is deleted.
func (l *Loop) settle(s *sender, e *erasing) error {
	var settled, left []ledger.Withdrawn
	for _, w := range e.rows {
		found, was := e.found[w.ID]
		if w.Sent <= s.proven || was && time.Since(found) > l.settings.Load().Silence {
			settled = append(settled, w)
		} else {
			left = append(left, w)
		}
	}
	if len(settled) > 0 {
		if err := l.o.Ledger.Settle(settled); err != nil {
			return err
		}
	}
	e.rows = left
	return nil
}

// quiet reports whether the worker is silent since it got the last one of some messages.
func (s *sender) quiet(rows []ledger.Withdrawn, t *Timing) bool {
	since := s.sign
	for i := range rows {
		if at := time.UnixMicro(rows[i].Sent); at.After(since) {
			since = at
		}
	}
	return len(rows) > 0 && time.Since(since) > s.patience(t)
}

// erased is the result of a deletion in a group.
type erased struct {
	last int64 // ID of the newest forgotten part
	err  error
}

// Erased returns the error of the last deletion in Graphiti if it included the forgotten part with
// an ID.
func (l *Loop) Erased(group string, id int64) error {
	if e, ok := l.erased.Load(group); ok && e.(erased).last >= id { //nolint:forcetypeassert // erase stores only these
		return e.(erased).err //nolint:forcetypeassert // likewise
	}
	return nil
}
