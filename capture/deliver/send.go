package deliver

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// maxRefused is the most refused copies to pass over.
const maxRefused = 100

// send sends the next copy, or for a test one in flight again if there is no other.
func (l *Loop) send(ctx context.Context, s *sender, isTest bool) {
	var c *ledger.Copy
	var err error
	if !isTest || len(s.flights) < window+tests {
		c, err = l.nextCopy(ctx, s, isTest)
	}
	f := s.again()
	switch {
	case err != nil:
		s.failed(err, time.Now())
		l.failedAt(failing{s.group, send}, err)
	case c == nil && isTest && f != nil:
		l.give(ctx, s, &f.Copy, f)
	case c == nil:
		s.waits = false
	case c.Losses >= aloneAfter && s.open() > 0 && !isTest:
		s.isolate = true
	default:
		if now := time.Now(); l.blind != graphiti.NoDiagnosis && now.Sub(l.lookedAt) > s.timing.LastTest { // it may list turns now
			l.lookedAt = now
			_, _ = l.list(ctx, c.Group, firstLook)
		}
		l.give(ctx, s, c, nil)
	}
}

// nextCopy returns the next copy for a worker, or nil. It passes over refused ones until the
// memory has accepted another one: then the fault is in the turn and not in the memory. A test
// prefers a copy that was not lost twice, which may stop the worker.
func (l *Loop) nextCopy(ctx context.Context, s *sender, isTest bool) (*ledger.Copy, error) {
	list, err := l.o.Ledger.Next(ctx, s.group, l.closed(s), min(len(l.refused), maxRefused)+window)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	next := &list[0]
	for i := range list {
		if at, refused := l.refused[list[i].Seq]; refused && at >= l.accepted {
			continue
		}
		if next = &list[i]; !isTest || next.Losses < aloneAfter {
			break
		}
	}
	return next, nil
}

// closed returns the groups that a worker's next copy must not be from.
func (l *Loop) closed(s *sender) (groups []string) {
	for _, g := range s.groups() {
		if s.unread[g] {
			groups = append(groups, g)
		}
	}
	for g, e := range l.erasing {
		if e.whole() && !slices.Contains(groups, g) {
			groups = append(groups, g)
		}
	}
	return groups
}

// give sends a copy in one call. again is its flight if it is in flight.
func (l *Loop) give(ctx context.Context, s *sender, c *ledger.Copy, again *flight) {
	if again == nil && s.group != "" && slices.Contains(l.closed(s), s.group) {
		s.retryAt = time.Now().Add(pollLedger)
		return
	}
	messages, err := l.o.Ledger.Messages(ctx, c)
	if err == nil && len(messages) == 0 { // forgotten meanwhile
		s.drop(again)
		l.note(func() error { return l.o.Ledger.MarkDelivered(c, false) })
		return
	}
	if err == nil && c.Sends > 0 && l.confirms() { // it may have arrived
		messages, err = l.lacking(ctx, c.Group, messages)
		if err == nil && len(messages) == 0 {
			if again == nil {
				l.note(func() error { return l.o.Ledger.MarkDelivered(c, true) })
			}
			s.lookAt = time.Now()
			return
		}
	}
	if err == nil {
		var ok bool
		switch ok, err = l.o.Ledger.MarkSent(c); {
		case err != nil && again == nil: // it may be marked, and is in no window
			l.note(func() error { return l.o.Ledger.Requeue(c, "") })
		case err == nil && !ok: // forgotten meanwhile
			s.drop(again)
			return
		}
	}
	began := time.Now()
	if err != nil {
		s.failed(err, began)
		l.failedAt(failing{s.group, send}, err)
		return
	}
	l.dated(messages)
	err = l.call(ctx, func(ctx context.Context) error { return l.o.Memory.Write(ctx, c.Group, messages) })
	l.gave(s, c, again, messages, began, err)
}

// gave records the result of a call that sent a copy.
func (l *Loop) gave(s *sender, c *ledger.Copy, again *flight, messages []graphiti.Row, began time.Time, err error) {
	now, at := time.Now(), failing{s.group, send}
	if err == nil {
		l.accepted++
		for i := range messages {
			l.episodes, l.chars = l.episodes+1, l.chars+len(messages[i].Text)
		}
		delete(l.refused, c.Seq)
		l.worked(at)
	} else {
		l.failedAt(at, err)
	}
	switch doubt := err != nil && !unsent(err); {
	case again != nil && (err == nil || doubt):
		s.tried(again, doubt, now)
	case again != nil:
		s.failed(err, now)
	case l.confirms() && (err == nil || doubt):
		s.inFlight(newFlight(c, messages, began), doubt, now)
	case err == nil:
		s.answered(false, now)
		l.note(func() error { return l.o.Ledger.MarkDelivered(c, false) })
		l.tell(c, began, false, nil)
	case doubt:
		l.unclear(s, c, began, err)
	case !graphiti.Retryable(err) && l.refusedBefore(c):
		l.dead(c, began, clip(l.o.Redact(graphiti.Sanitize(err))), errDead)
	default:
		if !graphiti.Retryable(err) {
			l.refused[c.Seq] = l.accepted
		}
		s.failed(err, now)
		reason := clip(err.Error())
		l.note(func() error { return l.o.Ledger.Requeue(c, reason) })
	}
}

// unclear records an unclear answer of a memory that does not show turns. It counts as a loss: after
// three of them, the copy waits until the memory has accepted another one, then it is tried once more.
func (l *Loop) unclear(s *sender, c *ledger.Copy, began time.Time, err error) {
	c.Losses++
	switch now := time.Now(); {
	case c.Losses < maxLosses:
		s.failed(err, now)
	case l.refusedBefore(c):
		l.dead(c, began, reasonUnclear, errLost)
		return
	default:
		l.refused[c.Seq] = l.accepted
		s.holdUntil = now.Add(min(s.timing.DoubtAfter<<min(c.Losses, 10), s.timing.LastTest))
	}
	l.note(func() error { return l.o.Ledger.Requeue(c, "") })
}

// refusedBefore reports whether the memory has accepted another copy since it refused this one.
func (l *Loop) refusedBefore(c *ledger.Copy) bool {
	at, refused := l.refused[c.Seq]
	return refused && at < l.accepted
}

// dead gives a copy up.
func (l *Loop) dead(c *ledger.Copy, began time.Time, reason string, err error) {
	delete(l.refused, c.Seq)
	l.note(func() error { return l.o.Ledger.MarkDead(c, reason) })
	l.o.Log.Warn("turn not stored by the memory, moved to the dead letters", "to_do", deadRemedy)
	l.tell(c, began, false, err)
}

// confirms reports whether turns stay in flight until they are listed.
func (l *Loop) confirms() bool { return l.o.Verify && l.blind == graphiti.NoDiagnosis }

// lacking returns the messages that a group does not list.
func (l *Loop) lacking(ctx context.Context, group string, messages []graphiti.Row) ([]graphiti.Row, error) {
	v, err := l.list(ctx, group, firstLook+2*window)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(messages, func(m graphiti.Row) bool { return v.names[m.Name] }), nil
}

// dated replaces timestamps in the memory's future with its current time.
func (l *Loop) dated(messages []graphiti.Row) {
	now := graphiti.Now(l.o.Memory.Clock())
	for i := range messages {
		if m := &messages[i]; m.Said.After(now) { // Graphiti hides messages from the future
			m.Said = now.UTC()
		}
	}
}

// tell counts a settled copy and reports it.
func (l *Loop) tell(c *ledger.Copy, began time.Time, verified bool, err error) {
	l.o.OnDelivered(Delivery{Turn: c.Turn, Group: c.Group, Began: began, Verified: verified, Err: err})
}

// look lists the groups of a worker's turns in flight.
func (l *Loop) look(ctx context.Context, s *sender) {
	views := make(map[string]*view)
	for _, g := range s.groups() {
		v, err := l.list(ctx, g, s.depthOf(g))
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			s.unread[g] = true
			l.failedAt(failing{g, look}, err)
			continue
		}
		delete(s.unread, g)
		l.worked(failing{g, look})
		views[g] = v
	}
	now := time.Now()
	if len(views) == 0 {
		s.unseen(now)
		return
	}
	l.conclude(s, views, s.looked(views, now))
	l.usual = cmp.Or(s.pace, l.usual)
	l.askQuiet(ctx, s, now)
}

// quietFor is how long a worker is quiet before a search may show why.
const quietFor = 10 * time.Second

// askQuiet searches for a quiet worker. If the memory names its problem, the silence has begun; once
// it answers again, a test is due.
func (l *Loop) askQuiet(ctx context.Context, s *sender, now time.Time) {
	f := s.again()
	if f == nil || now.Sub(s.sign) < min(quietFor, s.timing.Silence) || s.askAt.After(now) {
		return
	}
	s.askAt = now.Add(s.timing.Silence / 6)
	refused := graphiti.Diagnose(l.search) != graphiti.NoDiagnosis
	l.find(ctx, f)
	switch {
	case graphiti.Diagnose(l.search) != graphiti.NoDiagnosis:
		s.refused()
	case refused && l.search == nil:
		l.testAll(time.Now())
	}
}

// find searches for a turn, and records the failure.
func (l *Loop) find(ctx context.Context, f *flight) (facts []graphiti.Fact) {
	l.search = l.call(ctx, func(ctx context.Context) (err error) {
		facts, err = l.o.Memory.Search(ctx, []string{f.Group}, graphiti.Shorten(f.messages[0].Text, "…", maxQuery), 1)
		return err
	})
	return facts
}

// conclude records findings in the ledger.
func (l *Loop) conclude(s *sender, views map[string]*view, fs findings) {
	seen := make(map[string]bool)
	for _, f := range fs.arrived {
		if !seen[f.Group] {
			l.o.OnSeen(f.Group, slices.DeleteFunc(slices.Clone(views[f.Group].rows), func(r graphiti.Row) bool {
				return !slices.ContainsFunc(fs.arrived, func(f *flight) bool {
					return slices.ContainsFunc(f.messages, func(m graphiti.Row) bool { return m.Name == r.Name })
				})
			}))
		}
		l.note(func() error { return l.o.Ledger.MarkDelivered(&f.Copy, true) })
		l.tell(&f.Copy, f.at, true, nil)
		seen[f.Group] = true
		if e := l.erasing[f.Group]; e != nil {
			e.at = time.Time{} // one of them may be forgotten
		}
	}
	for _, f := range fs.beyond {
		l.note(func() error { return l.o.Ledger.MarkDelivered(&f.Copy, false) })
		l.tell(&f.Copy, f.at, false, nil)
	}
	for _, f := range fs.lost {
		l.lost++
		l.note(func() error { return l.o.Ledger.Requeue(&f.Copy, "") })
		l.tell(&f.Copy, f.at, false, errLost)
	}
	for _, f := range fs.dead {
		l.dead(&f.Copy, f.at, reasonPoison, errLost)
	}
	if fs.revived {
		l.o.Log.Info("memory stores messages again, sending lost turns again")
	}
}

// The reasons of dead letters: the memory lost the turn, or gave unclear answers and does not show it.
const (
	reasonPoison  = "the memory lost it three times, the last time alone: its worker probably fails at this turn"
	reasonUnclear = "its calls ended without a clear answer, and the memory does not show whether it stored the turn; graphiti-proxy queue retry sends it again"
)

// list returns the last n episodes of a group.
func (l *Loop) list(ctx context.Context, group string, n int) (*view, error) {
	var list []graphiti.Row
	clock := l.o.Memory.Clock() // before the listing, which may be older than its answer
	err := l.call(ctx, func(ctx context.Context) (err error) {
		list, err = l.o.Memory.Episodes(ctx, group, n)
		return err
	})
	if errors.Is(err, graphiti.ErrTooLarge) { // the episode may be older than any listing reaches
		return &view{asked: deepest, full: true, oldest: time.Now()}, nil
	}
	if err != nil {
		return nil, err
	}
	v := &view{names: make(map[string]bool, len(list)), rows: list, asked: n, full: len(list) >= n, clock: clock}
	for i := range list {
		v.names[list[i].Name] = true
		if i == 0 || list[i].Said.Before(v.oldest) {
			v.oldest = list[i].Said
		}
	}
	if len(list) > 0 {
		l.listed, l.blind = true, graphiti.NoDiagnosis
	}
	return v, nil
}

// maxQuery is the most characters of a message in a query.
const maxQuery = 200

// silence finds out why a worker is silent. If a search shows facts of a group, and a listing after
// it shows no episode, listings do not work, as those of some MCP servers on FalkorDB. If neither has
// ever shown anything, listings do not work either, provided that each group has a worker of its own,
// which survives failures.
func (l *Loop) silence(ctx context.Context, s *sender) {
	if !s.silent.IsZero() && time.Since(s.silent) < 4*s.patience() {
		l.o.Log.Warn("memory accepts messages without storing them", "since", s.sign, "to_do", l.diagnosis().Remedy())
	}
	f := s.again()
	if f == nil {
		return
	}
	facts := l.find(ctx, f)
	if l.search != nil || l.listed || len(facts) == 0 && (!l.o.Apart || s.silent.IsZero()) {
		return
	}
	if v, err := l.list(ctx, f.Group, firstLook); err != nil || v.full || l.listed {
		s.lookAt = time.Now() // it was stored between the last listing and the search
		return
	}
	if l.blind = graphiti.Unshown; len(facts) > 0 {
		l.blind = graphiti.Unlisted
	}
	l.since = time.Now()
	l.lookedAt = l.since
	l.o.Log.Warn("listings do not show stored turns", "why", l.blind.Says(), "to_do", l.blind.Remedy())
	for _, s := range l.senders {
		var accepted []*flight
		for _, f := range s.flights {
			if f.doubt {
				l.unclear(s, &f.Copy, f.at, nil)
			} else {
				accepted = append(accepted, f)
			}
		}
		l.conclude(s, nil, findings{beyond: accepted})
		s.flights, s.silent, s.waits = nil, time.Time{}, true
	}
}
