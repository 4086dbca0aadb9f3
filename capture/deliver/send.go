package deliver

import (
	"cmp"
	"context"
	"errors"
	"maps"
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

// blame is the last failure of a copy.
type blame struct {
	taken int // copies that the memory had taken before
	order int
}

// blame records that the memory has refused or lost a copy, and reports whether the copy is the cause:
// the memory has taken another one since the last failure.
func (l *Loop) blame(c *ledger.Copy) bool {
	was, again := l.blamed[c.Seq]
	l.blames++
	l.blamed[c.Seq] = blame{l.taken, l.blames}
	return again && was.taken < l.taken
}

// nextCopy returns the next copy for a worker, or nil. It passes over failed ones until the
// memory has taken another one. If all failed, the one with the fewest losses is next, and of equal ones
// the earliest failure.
func (l *Loop) nextCopy(ctx context.Context, s *sender) (*ledger.Copy, error) {
	list, err := l.o.Ledger.Next(ctx, s.group, min(len(l.blamed), maxBlamed)+1)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	next := &list[0]
	for i := range list {
		b, failed := l.blamed[list[i].Seq]
		if !failed || b.taken < l.taken {
			return &list[i], nil
		}
		if cmp.Or(cmp.Compare(list[i].Losses, next.Losses), cmp.Compare(b.order, l.blamed[next.Seq].order)) < 0 {
			next = &list[i]
		}
	}
	return next, nil
}

// newFlight returns a copy with its messages.
func (l *Loop) newFlight(ctx context.Context, c *ledger.Copy) (*flight, error) {
	messages, err := l.o.Ledger.Messages(ctx, c)
	f := &flight{Copy: *c, missing: messages, depth: firstLook, at: time.Now(), since: time.Now()}
	for i := range messages {
		if m := &messages[i]; i == 0 || m.Said.Before(f.first) {
			f.first = m.Said
		}
	}
	return f, err
}

// send sends the next copy of a worker. A copy that was sent before may have arrived.
func (l *Loop) send(ctx context.Context, s *sender) error {
	c, err := l.nextCopy(ctx, s)
	if c == nil || err != nil {
		s.waits, s.silent = false, time.Time{}
		maps.DeleteFunc(l.failures, func(at failing, _ failure) bool { return !at.deletes && l.key(at.group) == s.group })
		return err
	}
	f, err := l.newFlight(ctx, c)
	if err != nil {
		return err
	}
	if len(f.missing) == 0 { // forgotten meanwhile
		return l.o.Ledger.MarkDelivered(c, false)
	}
	if c.Sends > 0 {
		switch l.find(ctx, f); {
		case f.unreadable:
			l.blame(c)
			return nil
		case f.unlisted:
			return nil
		case len(f.missing) == 0:
			return l.arrived(s, f)
		case f.beyond:
			return l.accepted(s, f)
		}
	}
	if ok, err := l.o.Ledger.MarkSent(&f.Copy); err != nil || !ok {
		return errors.Join(err, l.o.Ledger.Requeue(c, "")) // it may be marked
	}
	f.at = time.Now()
	err = l.call(ctx, l.run.timeout, func(ctx context.Context) error { return l.o.Memory.Write(ctx, f.Group, f.missing) })
	return l.gave(s, f, err)
}

// gave records the result of a call that sent a copy.
func (l *Loop) gave(s *sender, f *flight, err error) error {
	l.report(failing{group: f.Group}, err)
	if err == nil {
		l.episodes += len(f.missing)
	}
	now, doubt := time.Now(), err != nil && !unsent(err)
	if err != nil && !doubt {
		if !graphiti.Retryable(err) && l.blame(&f.Copy) {
			return l.dead(&f.Copy, f.at, err.Error(), errDead)
		}
		return l.o.Ledger.Requeue(&f.Copy, clip(err.Error()))
	}
	f.since, f.doubt = now, doubt
	s.flight, s.at = f, now.Add(l.run.timing.FirstLook)
	if s.silent.IsZero() {
		s.sign = now
	}
	return nil
}

// unsent reports whether a failed call certainly had no effect.
func unsent(err error) bool {
	return graphiti.Unsent(err) || !graphiti.Retryable(err)
}

// look lists the group of the turn in flight, and settles the turn if it is listed or lost.
func (l *Loop) look(ctx context.Context, s *sender) error {
	f := s.flight
	before := len(f.missing)
	l.find(ctx, f)
	now := time.Now()
	switch progress := len(f.missing) < before; {
	case f.unreadable && now.Sub(f.since) >= s.patience(&l.run.timing):
		s.flight, s.at, s.waits = nil, time.Time{}, true
		l.blame(&f.Copy)
		return l.o.Ledger.Requeue(&f.Copy, "the listing of its group fails")
	case f.unreadable:
	case f.unlisted && s.silent.IsZero(): // silence then proves nothing
		s.sign, f.since = now, now
	case progress && len(f.missing) > 0:
		s.progress(now)
		f.since = now
	}
	s.at = now.Add(min(max(now.Sub(f.since)/4, l.run.timing.FirstLook), l.run.timing.LastLook))
	switch {
	case f.unlisted:
	case len(f.missing) == 0:
		return l.arrived(s, f)
	case f.beyond:
		return l.accepted(s, f)
	case f.lost, now.Sub(f.since) >= s.patience(&l.run.timing):
		return l.missed(s, f)
	default:
		l.ask(ctx, s)
	}
	return nil
}

// find lists the group of a flight, and moves its listed messages from missing to seen. If they may be older than
// a listing, it lists more.
func (l *Loop) find(ctx context.Context, f *flight) {
	err := l.list(ctx, f)
	l.report(failing{group: f.Group}, err)
	var status *graphiti.StatusError
	f.unlisted, f.unreadable = err != nil, errors.As(err, &status) && status.Code == http.StatusInternalServerError
}

func (l *Loop) list(ctx context.Context, f *flight) error {
	for {
		var list []graphiti.Row
		err := l.call(ctx, l.run.timeout, func(ctx context.Context) (err error) {
			list, err = l.o.Memory.Episodes(ctx, f.Group, f.depth)
			return err
		})
		if f.beyond = errors.Is(err, graphiti.ErrTooLarge); f.beyond {
			return nil
		}
		if err != nil {
			return err
		}
		l.listed = l.listed || len(list) > 0
		older := len(list) < f.depth // the listing has all since the first message
		for i := range list {
			r := &list[i]
			older = older || r.Said.Before(f.first)
			if at := slices.IndexFunc(f.missing, func(m graphiti.Row) bool { return m.Name == r.Name }); at >= 0 {
				f.missing = slices.Delete(f.missing, at, at+1)
				f.seen = append(f.seen, *r)
			}
		}
		if f.beyond = !older && f.depth == deepest; older || f.beyond || len(f.missing) == 0 {
			return nil
		}
		f.depth = min(4*f.depth, deepest)
	}
}

// arrived settles a turn that is listed. If it was sent only once, everything before it is processed.
func (l *Loop) arrived(s *sender, f *flight) error {
	l.o.OnSeen(f.Group, f.seen)
	if err := l.o.Ledger.MarkDelivered(&f.Copy, true); err != nil {
		return err
	}
	now := time.Now()
	if f.Sends == 1 {
		s.proven = max(s.proven, f.Sent)
		if !f.doubt && s.silent.IsZero() {
			s.measure(now.Sub(f.at))
			l.usual = s.pace
		}
	}
	if !s.silent.IsZero() {
		l.o.Log.Info("memory stores messages again, sending lost turns again")
	}
	s.progress(now)
	if e := l.erasing[f.Group]; e != nil {
		e.at = time.Time{} // it may be forgotten
	}
	l.took(s, f, true)
	return nil
}

// accepted settles a turn that may be older than the longest listing.
func (l *Loop) accepted(s *sender, f *flight) error {
	if err := l.o.Ledger.MarkDelivered(&f.Copy, false); err != nil {
		return err
	}
	l.took(s, f, false)
	return nil
}

func (l *Loop) took(s *sender, f *flight, verified bool) {
	s.flight, s.at = nil, time.Time{}
	l.taken++
	delete(l.blamed, f.Seq)
	l.tell(&f.Copy, f.at, verified, nil)
}

// missed has a turn sent again that is not listed. Unless Graphiti has restarted, its worker is silent, and the
// next turn tests the worker.
func (l *Loop) missed(s *sender, f *flight) error {
	s.flight, s.at, s.waits = nil, time.Time{}, true
	l.lost++
	if !f.lost && !f.resumed {
		stored := l.taken > l.blamed[f.Seq].taken
		l.blame(&f.Copy)
		switch {
		case s.silent.IsZero():
			if s.silent = s.sign; stored { // the worker stopped at this turn, and not at those after it
				f.Losses++
			}
			if f.Losses >= maxLosses {
				return l.dead(&f.Copy, f.at, reasonPoison, errLost)
			}
		case !s.warned:
			s.warned = true
			l.o.Log.Warn("memory accepts messages without storing them", "since", s.sign, "to_do", l.diagnosis().Remedy())
		}
	}
	l.tell(&f.Copy, f.at, false, errLost)
	return l.o.Ledger.Requeue(&f.Copy, "")
}

// ask searches for the turn of a quiet worker. If the memory names its problem, and then answers
// again, a test is due.
func (l *Loop) ask(ctx context.Context, s *sender) {
	f, now := s.flight, time.Now()
	if now.Sub(s.sign) < min(quietFor, l.run.timing.Silence) || s.askAt.After(now) {
		return
	}
	s.askAt = now.Add(l.run.timing.Silence / 6)
	refused := graphiti.Diagnose(l.search) != graphiti.NoDiagnosis
	l.search = l.call(ctx, l.run.timeout, func(ctx context.Context) error {
		_, err := l.o.Memory.Search(ctx, []string{f.Group}, graphiti.Shorten(f.missing[0].Text, "…", maxQuery), 1)
		return err
	})
	if refused && l.search == nil {
		l.testAll()
	}
}

// dead gives a copy up.
func (l *Loop) dead(c *ledger.Copy, began time.Time, reason string, err error) error {
	delete(l.blamed, c.Seq)
	l.o.Log.Warn("turn not stored by the memory, moved to the dead letters", "to_do", deadRemedy)
	l.tell(c, began, false, err)
	return l.o.Ledger.MarkDead(c, reason)
}

// tell reports the result of a copy.
func (l *Loop) tell(c *ledger.Copy, began time.Time, verified bool, err error) {
	l.o.OnDelivered(Delivery{Turn: c.Turn, Group: c.Group, Began: began, Verified: verified, Err: err})
}
