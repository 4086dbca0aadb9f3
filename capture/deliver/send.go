package deliver

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

const (
	fewest  = 16   // episodes to list
	deepest = 4096 // most episodes to list

	firstLook = 25 * time.Millisecond // delay of the first listing after sending
	lastLook  = time.Second           // longest time between two listings
	lastTest  = time.Hour             // longest pause between two tests of a silent worker

	maxBlamed = 100 // most failed copies to pass over
	maxLosses = 3   // losses that make a turn dead

	quietFor = 10 * time.Second // time of quiet before a search may show why
	maxQuery = 200              // most characters of its query

	// reasonPoison is the reason of dead letters that the memory lost.
	reasonPoison = "the memory lost it three times, and stored other turns meanwhile: its worker probably fails at this turn"
)

// sender copies the turns of one worker of Graphiti, one after the other.
type sender struct {
	group  string    // the worker's only group, or "" if it serves all
	waits  bool      // there may be waiting copies
	at     time.Time // of the next call
	flight *flight   // the turn that was sent and is not listed yet, or nil
	askAt  time.Time // of the next search that may show why the worker is quiet
	proven int64     // everything sent up to this position is processed

	pace   time.Duration // usual time of a turn, or 0 if unknown
	sign   time.Time     // last progress, or the first reason to expect some
	silent time.Time     // start of a silence, or zero
}

// flight is a turn that was sent.
type flight struct {
	ledger.Copy
	missing  []graphiti.Row // messages that are not listed yet
	seen     []graphiti.Row // listed ones
	first    time.Time      // earliest timestamp of the messages
	depth    int            // episodes to list
	unproven bool           // it may be older than the longest listing
	since    time.Time      // start of the wait for its listing
	doubt    bool           // its call had no clear answer, or an earlier process made it
	lost     bool           // Graphiti has probably restarted, or works again: if it is missing, it is lost
}

// silence returns the shortest silence of a worker with a known pace that means a fault.
func (l *Loop) silence() time.Duration { return min(30*time.Second, l.o.StallAfter()) }

// patience returns how long the turn of a worker may be missing. In a silence, it is a tenth of the silence:
// recovery takes little longer than the fault, and a long one gets few tests. Over REST a silent worker is
// dead, and a restart drops the tests. Over MCP a worker tries a message for up to 70 seconds while
// its model refuses, and stores each test after all.
func (l *Loop) patience(s *sender) time.Duration {
	first, again := l.silence(), l.silence()/3
	if s.group != "" {
		first = 5 * l.silence() / 2
		again = first
	}
	switch f := s.flight; {
	case f != nil && !s.silent.IsZero():
		return min(max(again, 4*s.pace, f.since.Sub(s.silent)/10), lastTest)
	case s.pace > 0:
		return max(first, 10*s.pace)
	case f != nil && f.doubt:
		return first
	}
	return l.o.StallAfter()
}

// next returns the next copy for a worker, or nil. It passes over failed ones until the
// memory has taken another one. If all failed, the one with the fewest losses is next, and of equal ones
// the earliest failure.
func (l *Loop) next(ctx context.Context, s *sender) (*ledger.Copy, error) {
	list, err := l.o.Ledger.Next(ctx, s.group, min(len(l.blamed), maxBlamed)+1)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	rank := func(c *ledger.Copy) []int64 {
		if at := l.blamed[c.Seq]; at.After(l.taken) {
			return []int64{int64(1 + c.Losses), at.UnixMicro()}
		}
		return nil
	}
	next := slices.MinFunc(list, func(a, b ledger.Copy) int { return slices.Compare(rank(&a), rank(&b)) })
	return &next, nil
}

// newFlight returns a copy with its messages.
func (l *Loop) newFlight(ctx context.Context, c *ledger.Copy) (*flight, error) {
	f := &flight{Copy: *c, depth: fewest, since: time.Now()}
	var err error
	if f.missing, err = l.o.Ledger.Messages(ctx, &f.Copy); len(f.missing) > 0 {
		f.first = slices.MinFunc(f.missing, func(a, b graphiti.Row) int { return a.Said.Compare(b.Said) }).Said
	}
	return f, err
}

// send sends the next copy of a worker, if there is one. A copy that was sent before may have arrived.
func (l *Loop) send(ctx context.Context, s *sender) error {
	c, err := l.next(ctx, s)
	if c == nil || err != nil {
		s.waits = false
		if l.erasing[s.group] == nil && (s.group != "" || len(l.erasing) == 0) { // else a forgotten part waits for the worker
			s.silent = time.Time{}
		}
		if at := l.failure.at; !at.deletes && l.sender(at.group) == s { // its copy was forgotten or dropped
			l.report(at, nil)
		}
		return err
	}
	f, err := l.newFlight(ctx, c)
	if err != nil {
		return err
	}
	if len(f.missing) == 0 { // forgotten meanwhile
		return l.o.Ledger.MarkDelivered(&f.Copy, false)
	}
	if f.Sends > 0 {
		fails := l.fails
		listed := l.find(ctx, f)
		l.fails = max(l.fails, fails) // a listing does not prove that the memory takes the copy
		switch {
		case !listed:
			l.blamed[f.Seq] = time.Now()
			return nil
		case len(f.missing) == 0:
			return l.arrived(s, f)
		}
	}
	if ok, err := l.o.Ledger.MarkSent(&f.Copy); err != nil || !ok {
		return errors.Join(err, l.o.Ledger.Requeue(&f.Copy, "")) // it may be marked
	}
	err = l.call(ctx, l.o.Timeout(), func(ctx context.Context) error { return l.o.Memory.Write(ctx, f.Group, f.missing) })
	return l.gave(s, f, err)
}

// gave records the result of a call that sent a copy.
func (l *Loop) gave(s *sender, f *flight, err error) error {
	l.report(failing{group: f.Group}, err)
	f.since, f.doubt = time.Now(), err != nil
	switch {
	case err == nil:
		l.episodes += len(f.missing)
	case !graphiti.Retryable(err):
		if before, was := l.blamed[f.Seq]; was && !before.After(l.taken) {
			return l.dead(f, err.Error(), err)
		}
		l.blamed[f.Seq] = time.Now()
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
	f := s.flight
	before := len(f.missing)
	listed := l.find(ctx, f)
	now := time.Now()
	late := now.Sub(f.since) >= l.patience(s)
	switch {
	case len(f.missing) == 0:
		return 0, l.arrived(s, f)
	case !listed && late:
		s.flight = nil
		l.blamed[f.Seq] = time.Now()
		return 0, l.o.Ledger.Requeue(&f.Copy, "the listing of its group fails")
	case !listed: // silence then proves nothing
		s.sign = now
	case len(f.missing) < before:
		s.sign, s.silent, f.since = now, time.Time{}, now
	case f.lost, late:
		return 0, l.missed(s, f)
	default:
		l.ask(ctx, s)
	}
	if f.lost {
		return 0, nil
	}
	return min(max(now.Sub(f.since)/4, firstLook), lastLook), nil
}

// find lists the group of a flight, moves its listed messages from missing to seen, and reports whether the
// listing worked. If they may be older than a listing, it lists more. A turn that may be older than the longest
// listing counts as stored.
func (l *Loop) find(ctx context.Context, f *flight) (listed bool) {
	var list []graphiti.Row
	err := l.call(ctx, l.o.Timeout(), func(ctx context.Context) (err error) {
		list, err = l.o.Memory.Episodes(ctx, f.Group, f.depth)
		return err
	})
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
	deeper := err == nil && !older && len(f.missing) > 0
	if deeper && f.depth < deepest {
		f.depth = min(4*f.depth, deepest)
		return l.find(ctx, f)
	}
	if deeper || errors.Is(err, graphiti.ErrTooLarge) {
		f.missing, f.unproven, err = nil, true, nil
	}
	if err != nil || l.sender(f.Group).flight == f { // a listing before f is sent again proves nothing
		l.report(failing{group: f.Group}, err)
	}
	return err == nil
}

// arrived settles a turn that is listed. If it was sent only once, everything before it is processed.
func (l *Loop) arrived(s *sender, f *flight) error {
	l.o.OnSeen(f.Group, f.seen)
	if err := l.o.Ledger.MarkDelivered(&f.Copy, !f.unproven); err != nil {
		return err
	}
	s.flight = nil
	l.taken = time.Now()
	delete(l.blamed, f.Seq)
	for _, c := range append(f.Joined, f.Copy) {
		l.o.OnDelivered(Delivery{Turn: c.Turn, Group: c.Group, Began: f.since, Verified: !f.unproven})
	}
	if f.unproven {
		return nil
	}
	now := time.Now()
	if f.Sends == 1 {
		s.proven = max(s.proven, f.Sent)
		if !f.doubt && s.silent.IsZero() {
			s.pace = max(now.Sub(f.since), 3*s.pace/4, time.Millisecond)
			l.usual = s.pace
		}
	}
	if !s.silent.IsZero() {
		l.o.Log.Info("memory stores messages again, sending lost turns again")
	}
	s.sign, s.silent = now, time.Time{}
	if e := l.erasing[f.Group]; e != nil {
		e.at = time.Time{} // it may be forgotten
	}
	return nil
}

// missed has a turn sent again that is not listed. Unless Graphiti has restarted, its worker is silent, and the
// next turn tests the worker.
func (l *Loop) missed(s *sender, f *flight) error {
	s.flight = nil
	l.lost++
	if !f.lost {
		since := !l.blamed[f.Seq].After(l.taken) && !l.taken.IsZero()
		l.blamed[f.Seq] = time.Now()
		if s.silent.IsZero() {
			if s.silent = s.sign; since { // the worker stopped at this turn, and not at those after it
				f.Losses++
			}
			if f.Losses >= maxLosses {
				return l.dead(f, reasonPoison, errors.New("lost by the memory"))
			}
		} else {
			l.o.Log.Warn("memory accepts messages without storing them", "since", s.silent, "to_do", l.diagnosis().Remedy())
		}
	}
	return l.o.Ledger.Requeue(&f.Copy, "")
}

// ask searches for the turn of a quiet worker. If the memory names its problem, and then answers
// again, a test is due.
func (l *Loop) ask(ctx context.Context, s *sender) {
	f, now := s.flight, time.Now()
	if now.Sub(s.sign) < min(quietFor, l.silence()) || s.askAt.After(now) {
		return
	}
	s.askAt = now.Add(l.silence() / 6)
	refused := graphiti.Diagnose(l.search) != graphiti.NoDiagnosis
	l.search = l.call(ctx, l.o.Timeout(), func(ctx context.Context) error {
		return graphiti.TrySearch(ctx, l.o.Memory, f.Group, graphiti.Shorten(f.missing[0].Text, "…", maxQuery))
	})
	if refused && l.search == nil {
		l.testAll()
	}
}

// dead gives a copy up.
func (l *Loop) dead(f *flight, reason string, err error) error {
	delete(l.blamed, f.Seq)
	l.o.Log.Warn("turn not stored by the memory, moved to the dead letters", "to_do", "run graphiti-proxy queue list --state dead")
	l.o.OnDelivered(Delivery{Turn: f.Turn, Group: f.Group, Began: f.since, Err: err})
	return l.o.Ledger.MarkDead(&f.Copy, reason)
}
