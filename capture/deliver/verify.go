package deliver

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

const (
	// maxSearches is the most searches in one poll of a group.
	maxSearches = 4

	// maxFacts is the number of facts requested per search.
	maxFacts = 20

	// maxQuery is the most characters of a message in a query.
	maxQuery = 200
)

// look polls a group for its turns in flight.
func (l *Loop) look(ctx context.Context, w *worker, a action) {
	g := a.group
	v, err := l.list(ctx, g.name, a.n)
	var facts view
	searched := false
	if err == nil && len(v.names) == 0 && !v.full {
		facts, searched, err = l.search(ctx, w, a)
		if err == nil && len(facts.names) > 0 { // they may have appeared between the two calls
			v, err = l.list(ctx, g.name, a.n)
		}
		searched = searched && len(v.names) == 0
	}
	l.mu.Lock()
	now := time.Now()
	if err != nil {
		w.pollFailed(g, now)
		l.failedLocked(a, err)
		l.mu.Unlock()
		return
	}
	l.workedLocked(a)
	if searched && len(facts.names) > 0 {
		l.hideLocked(true, now)
	}
	var fs findings
	if searched && l.run.sight.hidden {
		fs = w.found(a, facts, now)
	} else {
		fs = w.applyView(a, v, now)
		if len(fs.verified) > 0 || v.ours {
			l.listsLocked()
		}
		if v.ours {
			w.showsOurs(g.name, now)
		}
	}
	l.mu.Unlock()
	if len(fs.verified) > 0 {
		l.o.OnSeen(g.name, slices.DeleteFunc(v.rows, func(r graphiti.Row) bool {
			return !slices.ContainsFunc(fs.verified, func(f *flight) bool { return !f.times[r.Name].IsZero() })
		}))
	}
	l.conclude(w, g, &fs)
	if len(fs.verified) > 0 {
		l.o.OnStored(g.name)
	}
	if fs.revived {
		l.o.Log.Info("memory stores messages again, sending lost turns again")
	}
}

// list returns the last n episodes of a group.
func (l *Loop) list(ctx context.Context, group string, n int) (v view, err error) {
	var list []graphiti.Row
	err = l.call(ctx, func(ctx context.Context) (err error) {
		list, err = l.o.Memory.Episodes(ctx, group, n)
		return err
	})
	if errors.Is(err, graphiti.ErrTooLarge) { // the episode may be older than any listing reaches
		return view{full: true, oldest: time.Now()}, nil // older messages may be hidden
	}
	if err != nil {
		return view{}, err
	}
	v = view{names: make(map[string]bool, len(list)), rows: list, full: len(list) >= n, clock: l.o.Memory.Clock()}
	for i := range list {
		v.names[list[i].Name] = true
		v.ours = v.ours || isBarrier(&list[i])
		if i == 0 || list[i].Said.Before(v.oldest) {
			v.oldest = list[i].Said
		}
	}
	return v, nil
}

// search searches for the turns of a group if its listing is empty, and reports whether
// that was necessary.
func (l *Loop) search(ctx context.Context, w *worker, a action) (v view, needed bool, err error) {
	l.mu.Lock()
	flights := slices.Clone(a.group.flights)
	needed = l.run.sight.hidden || len(flights) > 0 && a.began.Sub(flights[0].at) > w.timing.DoubtAfter
	l.mu.Unlock()
	if !needed {
		return view{}, false, nil
	}
	v = view{names: make(map[string]bool)}
	for _, sought := range flights[:min(len(flights), maxSearches)] {
		var facts []graphiti.Fact
		err := l.call(ctx, func(ctx context.Context) (err error) {
			facts, err = l.o.Memory.Search(ctx, []string{a.group.name}, sought.query(), maxFacts)
			return err
		})
		if err != nil {
			return view{}, true, err
		}
		for _, f := range flights {
			for name, at := range f.times {
				v.names[name] = v.names[name] || slices.ContainsFunc(facts, func(fact graphiti.Fact) bool { return readFrom(&fact, at) })
			}
		}
	}
	maps.DeleteFunc(v.names, func(_ string, there bool) bool { return !there })
	return v, true, nil
}

// query returns the query for a turn.
func (f *flight) query() string {
	texts := make([]string, len(f.item.Messages))
	for i, msg := range f.item.Messages {
		texts[i] = graphiti.Shorten(msg.Text, "…", maxQuery)
	}
	return strings.Join(texts, "\n")
}

// readFrom reports whether a fact comes from the message with that time. The memory states
// the time of the message, or else when the fact became true.
func readFrom(f *graphiti.Fact, at time.Time) bool {
	if !f.ReferenceTime.IsZero() {
		return f.ReferenceTime.Truncate(time.Microsecond).Equal(at.Truncate(time.Microsecond))
	}
	return !f.ValidAt.IsZero() && f.ValidAt.Truncate(time.Second).Equal(at.Truncate(time.Second))
}

const (
	reasonLost    = "accepted by the memory, then lost"
	reasonPoison  = "accepted by the memory and lost each time; the turn may crash its worker"
	reasonUnknown = "the call ended without an answer, and the memory does not show whether it stored the turn; graphiti-proxy queue retry sends it again"
)

// conclude writes the findings of a poll to the ledger.
func (l *Loop) conclude(w *worker, g *group, fs *findings) {
	for _, to := range []struct {
		flights  []*flight
		verified bool
		err      error
		write    func([]Item) error
	}{
		{fs.verified, true, nil, func(items []Item) error { return l.o.Ledger.MarkDelivered(items, true) }},
		{fs.unverified, false, nil, func(items []Item) error { return l.o.Ledger.MarkDelivered(items, false) }},
		{fs.lost, false, errLost, func(items []Item) error { return l.o.Ledger.Requeue(items, reasonLost) }},
	} {
		if items := itemsOf(to.flights); len(items) > 0 {
			_ = l.note(w, g, func() error { return to.write(items) })
			l.tellFlights(to.flights, to.verified, to.err)
		}
	}
	for reason, flights := range map[string][]*flight{reasonPoison: fs.dead, reasonUnknown: fs.unknown} {
		for _, f := range flights {
			_ = l.note(w, g, func() error { return l.o.Ledger.MarkDead(f.item, reason) })
			l.o.Log.Warn("turn not stored by the memory, moved to the dead letters", "to_do", deadRemedy)
		}
		l.tellFlights(flights, false, errDead)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lost += len(fs.lost)
	for _, f := range fs.lost {
		w.add(g.name, !f.item.Backfill)
	}
}

func (l *Loop) tellFlights(flights []*flight, verified bool, err error) {
	for _, f := range flights {
		l.tell([]Item{f.item}, f.at, verified, err)
	}
}

func itemsOf(flights []*flight) []Item {
	out := make([]Item, len(flights))
	for i, f := range flights {
		out[i] = f.item
	}
	return out
}

// hideLocked records that listings do not work, and logs a new diagnosis.
func (l *Loop) hideLocked(shown bool, now time.Time) {
	if l.run.sight.hide(shown, now) {
		d := l.run.sight.diagnosis()
		l.o.Log.Warn("listings do not show stored turns", "why", d.Says(), "to_do", d.Remedy())
	}
	for _, w := range l.run.workers {
		w.wentBlind(now)
		w.signal()
	}
}

// listsLocked records that a listing shows stored messages.
func (l *Loop) listsLocked() {
	if l.run.sight.lists() {
		l.o.Log.Info("memory lists stored turns again")
	}
}

// writeBarrier sends a barrier and polls for it later unless the memory certainly did not
// accept it. proof selects the group in which the barrier is a proof.
func (l *Loop) writeBarrier(ctx context.Context, w *worker, proof bool) error {
	l.mu.Lock()
	s := sentBarrier{name: barrierName(), group: l.run.probe, pos: w.beginBarrier()}
	if proof {
		s.group = w.barrierGroup(s.group)
	}
	l.mu.Unlock()
	err := l.call(ctx, func(ctx context.Context) error { return l.o.Memory.Write(ctx, s.group, barrierMessage(s.name)) })
	l.mu.Lock()
	defer l.mu.Unlock()
	s.accepted = err == nil
	w.barrierSent(s, s.accepted || !unsent(err), time.Now())
	return err
}

// lookForBarrier polls for the newest barrier. A visible one is then removed.
func (l *Loop) lookForBarrier(ctx context.Context, w *worker) {
	l.mu.Lock()
	group := w.barrier.sent[len(w.barrier.sent)-1].group
	l.mu.Unlock()
	found, empty, err := l.seeBarrier(ctx, w, group)
	if err == nil && !found {
		facts, failed := l.countFacts(ctx, group)
		if empty && facts > 0 { // it may have appeared between the two calls
			found, empty, err = l.seeBarrier(ctx, w, group)
		}
		sure := !empty || l.saidDatabase(ctx) == "neo4j"
		l.mu.Lock()
		if !empty { // they may come from other messages
			facts = 0
		}
		if err == nil && !found {
			l.judgeLocked(w, facts, failed, sure, time.Now())
		}
		l.mu.Unlock()
	}
}

// seeBarrier reports whether a listing of a group shows a barrier, and whether the group is
// empty.
func (l *Loop) seeBarrier(ctx context.Context, w *worker, group string) (found, empty bool, err error) {
	v, err := l.list(ctx, group, pollMargin)
	l.mu.Lock()
	now, revived := time.Now(), false
	if err != nil {
		l.run.search = err
		w.barrierUnseen(now)
	} else if found, revived = w.sawBarriers(group, v.names, now); found {
		l.listsLocked()
	}
	l.mu.Unlock()
	if revived {
		l.o.Log.Info("memory stores messages again, sending lost turns again")
	}
	return found, len(v.names) == 0, err
}

// judgeLocked decides why a listing does not show a barrier. If a search shows it, listings
// do not work. If neither a search nor any listing ever showed anything, listings do not
// work either, provided that each group has its own worker and that the worker had time for
// an accepted barrier: such workers survive failures. A single shared worker is dead
// instead, and so is a worker after its memory has listed messages.
func (l *Loop) judgeLocked(w *worker, facts int, failed error, sure bool, now time.Time) {
	l.run.search = failed
	switch {
	case failed != nil:
	case facts > 0:
		l.hideLocked(true, now)
	case !w.stalled.IsZero() && !l.run.sight.listed && !sure && l.o.Apart && slices.ContainsFunc(w.barrier.sent, func(s sentBarrier) bool {
		return s.accepted && now.Sub(s.at) > w.timing.DoubtAfter
	}):
		l.hideLocked(false, now)
	}
}

// countFacts returns the number of facts that a search of a barrier's group shows: in the
// probe group those of barriers, elsewhere those of other messages. Facts of other groups
// are no evidence about this group's listing.
func (l *Loop) countFacts(ctx context.Context, group string) (n int, err error) {
	err = l.call(ctx, func(ctx context.Context) error {
		facts, err := l.o.Memory.Search(ctx, []string{group}, graphiti.CheckText, maxFacts)
		n = len(facts)
		return err
	})
	return n, err
}

// saidDatabase returns the memory's database, or the last known one if the memory does not
// answer.
func (l *Loop) saidDatabase(ctx context.Context) (name string) {
	if m, ok := l.o.Memory.(interface{ Database(context.Context) string }); ok {
		_ = l.call(ctx, func(ctx context.Context) error { name = m.Database(ctx); return nil })
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if name != "" {
		l.database = name
	}
	return l.database
}

// removeLeft removes barriers that a listing has shown. It is repeated until a listing
// proves the removal; searches omit barriers meanwhile.
func (l *Loop) removeLeft(ctx context.Context, w *worker) {
	l.mu.Lock()
	group := w.barrier.left[0]
	l.mu.Unlock()
	gone := l.deleteBarriers(ctx, group)
	l.mu.Lock()
	defer l.mu.Unlock()
	w.removed(group, gone, time.Now())
}

// deleteBarriers deletes a group's barriers and reports success.
func (l *Loop) deleteBarriers(ctx context.Context, group string) bool {
	l.mu.Lock()
	probe, awaited := l.run.probe, l.barriers > 0
	l.mu.Unlock()
	if group == probe && awaited {
		return false // a call of Barrier waits for another one and will delete both
	}
	err := l.call(ctx, func(ctx context.Context) error {
		if group == probe {
			return l.o.Memory.Forget(ctx, group)
		}
		_, err := l.o.Memory.ForgetEpisodes(ctx, group, isBarrier)
		return err
	})
	if err != nil {
		l.o.Log.Debug("delete barrier failed", "error", err)
	}
	return err == nil
}
