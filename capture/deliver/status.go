package deliver

import (
	"context"
	"errors"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// maxReason bounds what is kept of why a turn was not delivered, in characters.
const maxReason = 300

// Status is how delivery goes.
type Status struct {
	InFlight  int
	Lost      int       // turns, by the memory, that were sent again
	Failing   time.Time // since when something fails for a group; zero: nothing does
	LastError string
	Remedy    string
	Quiet     time.Time // since when nothing accepted has become visible; zero: nothing is awaited
	Stalled   time.Time // since when the memory keeps nothing; zero: it does
	Unlisted  time.Time // since when turns cannot be verified by a listing
	Breaker   string    // closed, half-open or open

	// Diagnosis says in a word why nothing is kept, or not verified.
	Diagnosis graphiti.Diagnosis
}

// Status says how delivery goes.
func (l *Loop) Status() Status {
	state := l.breaker.State() // not under our lock: it takes it itself
	l.mu.Lock()
	defer l.mu.Unlock()
	s := Status{Lost: l.lost, Breaker: state}
	for _, w := range l.run.workers {
		for _, g := range w.flying {
			s.InFlight += len(g.flights)
		}
		if len(w.flying) > 0 && (s.Quiet.IsZero() || w.sign.Before(s.Quiet)) {
			s.Quiet = w.sign
		}
	}
	if f := l.run.failures.all(); !f.since.IsZero() {
		s.Failing, s.LastError, s.Remedy = f.since, f.why, f.remedy
	}
	if s.Unlisted = l.run.sight.unlisted; !s.Unlisted.IsZero() {
		s.Diagnosis = l.run.sight.diagnosis()
	}
	if s.Stalled = l.stalledLocked(); !s.Stalled.IsZero() {
		s.Diagnosis = l.stallLocked()
	}
	return s
}

// stalledLocked is since when a worker keeps nothing.
func (l *Loop) stalledLocked() (since time.Time) {
	for _, w := range l.run.workers {
		if !w.stalled.IsZero() && (since.IsZero() || w.stalled.Before(since)) {
			since = w.stalled
		}
	}
	return since
}

// stallLocked says why nothing is kept, as far as that shows.
func (l *Loop) stallLocked() graphiti.Diagnosis {
	if d := graphiti.Diagnose(l.run.search); d != graphiti.NoDiagnosis {
		return d
	}
	switch {
	case l.o.Apart:
		return graphiti.ModelFails
	case !l.run.sight.listed:
		return graphiti.NeverKept
	}
	return graphiti.WorkerDead
}

// failures are what does not work now, until it works again for the same group:
// that it works for another one says nothing.
type failures map[failing]failure

type failing struct {
	group string
	kind  kind
}

// failure is why turns of a group are not sent, or not seen.
type failure struct {
	since, last time.Time
	why, remedy string
}

// all is the failure that there is in all: since when, and what it was last;
// zero when there is none.
func (fs failures) all() (all failure) {
	for _, f := range fs {
		since := f.since
		if !all.since.IsZero() && all.since.Before(since) {
			since = all.since
		}
		if f.last.After(all.last) {
			all = f
		}
		all.since = since
	}
	return all
}

// failedLocked notes that an action has failed.
func (l *Loop) failedLocked(a action, err error) {
	if errors.Is(err, context.Canceled) || errors.Is(err, ErrNotTried) {
		return // it is to stop, or others failed before it
	}
	at, now := failing{a.group.name, a.kind}, time.Now()
	f := failure{since: now, last: now, why: err.Error(), remedy: remedyOf(err)}
	if before, had := l.run.failures[at]; had {
		f.since = before.since
	}
	if asked := retryAfter(err); asked > 0 {
		f.why += "; it asked to be left alone for " + asked.String()
	}
	f.why = clip(f.why)
	l.run.failures[at] = f
	if !l.run.failing && now.Sub(l.failLog) > time.Minute { // what comes and goes, once a minute
		l.run.failing, l.failLog = true, now
		l.o.Log.Warn("turns cannot be delivered and wait", "error", err, "to_do", remedyOf(err))
	}
}

func (l *Loop) workedLocked(a action) {
	delete(l.run.failures, failing{a.group.name, a.kind})
	if l.run.failing && len(l.run.failures) == 0 {
		l.run.failing = false
		l.o.Log.Info("turns are delivered again")
	}
}

// clip shortens a reason to what is kept of it.
func clip(reason string) string { return graphiti.Shorten(reason, "…", maxReason) }
