package deliver

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

const (
	firstLook = 16   // fewest episodes to list
	deepest   = 4096 // most episodes to list

	maxBlamed = 100 // most failed copies to pass over

	// maxLosses is the number of losses that make a turn dead.
	maxLosses = 3

	// quietFor is how long a worker is quiet before a search may show why, and maxQuery the most
	// characters of its query.
	quietFor = 10 * time.Second
	maxQuery = 200
)

// reasonPoison is the reason of dead letters that the memory lost.
const reasonPoison = "the memory lost it three times, and stored other turns meanwhile: its worker probably fails at this turn"

// blame records that the memory has refused or lost a copy.
func (l *Loop) blame(c *ledger.Copy) {
	l.events++
	l.blamed[c.Seq] = l.events
}

// next returns the next copy for a worker, or nil. It passes over failed ones until the
// memory has taken another one. If all failed, the one with the fewest losses is next, and of equal ones
// the earliest failure.
func (l *Loop) next(ctx context.Context, s *sender) (*ledger.Copy, error) {
	list, err := l.o.Ledger.Next(ctx, s.group, min(len(l.blamed), maxBlamed)+1)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	rank := func(c *ledger.Copy) []int {
		if at := l.blamed[c.Seq]; at > l.taken {
			return []int{1 + c.Losses, at}
		}
		return nil
	}
	next := slices.MinFunc(list, func(a, b ledger.Copy) int { return slices.Compare(rank(&a), rank(&b)) })
	return &next, nil
}

// newFlight returns a copy with its messages.
func (l *Loop) newFlight(ctx context.Context, c *ledger.Copy) (*flight, error) {
	f := &flight{Copy: *c, depth: firstLook, at: time.Now(), since: time.Now()}
	var err error
	f.missing, err = l.o.Ledger.Messages(ctx, &f.Copy)
	for i := range f.missing {
		if m := &f.missing[i]; i == 0 || m.Said.Before(f.first) {
			f.first = m.Said
		}
	}
	return f, err
}

// send sends the next copy of a worker, and reports whether there was one. A copy that was sent before
// may have arrived.
func (l *Loop) send(ctx context.Context, s *sender) (more bool, err error) {
	c, err := l.next(ctx, s)
	if c == nil || err != nil {
		s.silent = time.Time{}
		if at := l.failure.at; !at.deletes && l.sender(at.group) == s { // its copy was forgotten or dropped
			l.report(at, nil)
		}
		return false, err
	}
	f, err := l.newFlight(ctx, c)
	if err != nil {
		return false, err
	}
	if len(f.missing) == 0 { // forgotten meanwhile
		return true, l.o.Ledger.MarkDelivered(&f.Copy, false)
	}
	if f.Sends > 0 {
		switch l.find(ctx, f); {
		case f.unreadable:
			l.blame(&f.Copy)
			return true, nil
		case f.unlisted:
			return true, nil
		case len(f.missing) == 0:
			return true, l.arrived(s, f)
		}
	}
	if ok, err := l.o.Ledger.MarkSent(&f.Copy); err != nil || !ok {
		return true, errors.Join(err, l.o.Ledger.Requeue(&f.Copy, "")) // it may be marked
	}
	f.at = time.Now()
	err = l.call(ctx, l.settings.Load().timeout, func(ctx context.Context) error { return l.o.Memory.Write(ctx, f.Group, f.missing) })
	return true, l.gave(s, f, err)
}

// gave records the result of a call that sent a copy.
func (l *Loop) gave(s *sender, f *flight, err error) error {
	l.report(failing{group: f.Group}, err)
	f.since, f.doubt = time.Now(), err != nil
	switch {
	case err == nil:
		l.episodes += len(f.missing)
	case !graphiti.Retryable(err):
		if before := l.blamed[f.Seq]; before > 0 && before < l.taken {
			return l.dead(f, err.Error(), err)
		}
		l.blame(&f.Copy)
		return l.o.Ledger.Requeue(&f.Copy, clip(err.Error()))
	case graphiti.Unsent(err):
		f.Sends-- // Graphiti certainly has no copy
		return l.o.Ledger.Requeue(&f.Copy, clip(err.Error()))
	}
	if s.flight = f; s.silent.IsZero() {
		s.sign = f.since
	}
	return nil
}

// look lists the group of the turn in flight, and settles the turn if it is listed or lost. It returns the
// time until the next call.
func (l *Loop) look(ctx context.Context, s *sender) (wait time.Duration, err error) {
	f, t := s.flight, l.settings.Load().Timing
	before := len(f.missing)
	l.find(ctx, f)
	now := time.Now()
	switch {
	case len(f.missing) == 0:
		return 0, l.arrived(s, f)
	case f.unreadable && now.Sub(f.since) >= s.patience(&t):
		s.flight = nil
		l.blame(&f.Copy)
		return 0, l.o.Ledger.Requeue(&f.Copy, "the listing of its group fails")
	case f.unreadable:
	case f.unlisted && s.silent.IsZero(): // silence then proves nothing
		s.sign, f.since = now, now
	case f.unlisted:
	case len(f.missing) < before:
		s.sign, s.silent, s.warned, f.since = now, time.Time{}, false, now
	case f.lost, now.Sub(f.since) >= s.patience(&t):
		return 0, l.missed(s, f)
	default:
		l.ask(ctx, s)
	}
	return min(max(now.Sub(f.since)/4, t.FirstLook), t.LastLook), nil
}

// find lists the group of a flight, and moves its listed messages from missing to seen. If they may be older than
// a listing, it lists more. A turn that may be older than the longest listing counts as stored.
func (l *Loop) find(ctx context.Context, f *flight) {
	err := l.list(ctx, f)
	if errors.Is(err, graphiti.ErrTooLarge) {
		f.missing, f.unproven, err = nil, true, nil
	}
	l.report(failing{group: f.Group}, err)
	var status *graphiti.StatusError
	f.unlisted, f.unreadable = err != nil, errors.As(err, &status) && status.Code == http.StatusInternalServerError
}

func (l *Loop) list(ctx context.Context, f *flight) error {
	for {
		var list []graphiti.Row
		err := l.call(ctx, l.settings.Load().timeout, func(ctx context.Context) (err error) {
			list, err = l.o.Memory.Episodes(ctx, f.Group, f.depth)
			return err
		})
		if err != nil {
			return err
		}
		l.listed = l.listed || len(list) > 0
		older := len(list) < f.depth // the listing has all since the first message
		for i := range list {
			r := &list[i]
			older = older || r.Said.Before(f.first)
			for _, side := range r.Sides() {
				if at := slices.IndexFunc(f.missing, func(m graphiti.Row) bool { return m.Name == side.Name }); at >= 0 {
					f.missing = slices.Delete(f.missing, at, at+1)
					f.seen = append(f.seen, *r)
				}
			}
		}
		switch {
		case older, len(f.missing) == 0:
			return nil
		case f.depth == deepest:
			return graphiti.ErrTooLarge
		}
		f.depth = min(4*f.depth, deepest)
	}
}

// arrived settles a turn that is listed. If it was sent only once, everything before it is processed.
func (l *Loop) arrived(s *sender, f *flight) error {
	l.o.OnSeen(f.Group, f.seen)
	if err := l.o.Ledger.MarkDelivered(&f.Copy, !f.unproven); err != nil {
		return err
	}
	s.flight = nil
	l.events++
	l.taken = l.events
	delete(l.blamed, f.Seq)
	for _, c := range append(f.Joined, f.Copy) {
		l.o.OnDelivered(Delivery{Turn: c.Turn, Group: c.Group, Began: f.at, Verified: !f.unproven})
	}
	if f.unproven {
		return nil
	}
	now := time.Now()
	if f.Sends == 1 {
		s.proven = max(s.proven, f.Sent)
		if !f.doubt && s.silent.IsZero() {
			took := max(now.Sub(f.at), time.Millisecond)
			if s.pace > 0 {
				took = (3*s.pace + took) / 4
			}
			s.pace, l.usual = took, took
		}
	}
	if !s.silent.IsZero() {
		l.o.Log.Info("memory stores messages again, sending lost turns again")
	}
	s.sign, s.silent, s.warned = now, time.Time{}, false
	if e := l.erasing[f.Group]; e != nil {
		e.at = time.Time{} // it may be forgotten
		l.Wake()
	}
	return nil
}

// missed has a turn sent again that is not listed. Unless Graphiti has restarted, its worker is silent, and the
// next turn tests the worker.
func (l *Loop) missed(s *sender, f *flight) error {
	s.flight = nil
	l.lost++
	if !f.lost {
		since := l.blamed[f.Seq] < l.taken
		l.blame(&f.Copy)
		switch {
		case s.silent.IsZero():
			if s.silent = s.sign; since { // the worker stopped at this turn, and not at those after it
				f.Losses++
			}
			if f.Losses >= maxLosses {
				return l.dead(f, reasonPoison, errors.New("lost by the memory"))
			}
		case !s.warned:
			s.warned = true
			l.o.Log.Warn("memory accepts messages without storing them", "since", s.sign, "to_do", l.diagnosis().Remedy())
		}
	}
	return l.o.Ledger.Requeue(&f.Copy, "")
}

// ask searches for the turn of a quiet worker. If the memory names its problem, and then answers
// again, a test is due.
func (l *Loop) ask(ctx context.Context, s *sender) {
	f, now, t := s.flight, time.Now(), l.settings.Load()
	if now.Sub(s.sign) < min(quietFor, t.Silence) || s.askAt.After(now) {
		return
	}
	s.askAt = now.Add(t.Silence / 6)
	refused := graphiti.Diagnose(l.search) != graphiti.NoDiagnosis
	l.search = l.call(ctx, t.timeout, func(ctx context.Context) error {
		_, err := l.o.Memory.Search(ctx, []string{f.Group}, graphiti.Shorten(f.missing[0].Text, "…", maxQuery), 1)
		return err
	})
	if refused && l.search == nil {
		l.testAll()
	}
}

// dead gives a copy up.
func (l *Loop) dead(f *flight, reason string, err error) error {
	delete(l.blamed, f.Seq)
	l.o.Log.Warn("turn not stored by the memory, moved to the dead letters", "to_do", deadRemedy)
	l.o.OnDelivered(Delivery{Turn: f.Turn, Group: f.Group, Began: f.at, Err: err})
	return l.o.Ledger.MarkDead(&f.Copy, reason)
}
