package deliver

import (
	"context"
	"errors"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// maxReason is the most characters of a stored delivery error.
const maxReason = 300

// Progress is the state of delivery.
type Progress struct {
	InFlight  int
	Lost      int       // turns lost by the memory and sent again
	Failing   time.Time // start of the earliest current failure, or zero
	LastError string
	Remedy    string
	Quiet     time.Time // last progress while turns are in flight, or zero
	Stalled   time.Time // start of the stall, or zero
	Unlisted  time.Time // since when listings cannot verify turns, or zero
	Breaker   string    // state of the circuit breaker: closed, half-open or open

	// Diagnosis is the reason for a stall or for missing listings.
	Diagnosis graphiti.Diagnosis
}

// Status returns the current state of delivery.
func (l *Loop) Status() Progress {
	state := l.breaker.State() // takes l.mu itself
	l.mu.Lock()
	defer l.mu.Unlock()
	s := Progress{Lost: l.lost, Breaker: state}
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

// stalledLocked returns the start of the earliest stall, or zero.
func (l *Loop) stalledLocked() (since time.Time) {
	for _, w := range l.run.workers {
		if !w.stalled.IsZero() && (since.IsZero() || w.stalled.Before(since)) {
			since = w.stalled
		}
	}
	return since
}

// stallLocked returns the most likely reason for a stall.
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

// failures holds the current failures. Only a success for the same group and kind of action
// ends one.
type failures map[failing]failure

type failing struct {
	group string
	kind  kind
}

// failure is the reason why the turns of a group are not sent or not verified.
type failure struct {
	since, last time.Time
	why, remedy string
}

// all returns the most recent failure with the earliest start of any, or zero.
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

// failedLocked records the failure of an action.
func (l *Loop) failedLocked(a action, err error) {
	if errors.Is(err, context.Canceled) || errors.Is(err, ErrNotTried) {
		return // canceled, or skipped because of earlier failures
	}
	at, now := failing{a.group.name, a.kind}, time.Now()
	f := failure{since: now, last: now, why: err.Error(), remedy: remedyOf(err)}
	if before, had := l.run.failures[at]; had {
		f.since = before.since
	}
	if asked := retryAfter(err); asked > 0 {
		f.why += "; it asked for a pause of " + asked.String()
	}
	f.why = clip(f.why)
	l.run.failures[at] = f
	if !l.run.failing && now.Sub(l.failLog) > time.Minute { // log intermittent failures at most once a minute
		l.run.failing, l.failLog = true, now
		l.o.Log.Warn("delivery failed, turns stay queued", "error", err, "to_do", remedyOf(err))
	}
}

func (l *Loop) workedLocked(a action) {
	delete(l.run.failures, failing{a.group.name, a.kind})
	if l.run.failing && len(l.run.failures) == 0 {
		l.run.failing = false
		l.o.Log.Info("delivery works again")
	}
}

// clip limits a reason to maxReason.
func clip(reason string) string { return graphiti.Shorten(reason, "…", maxReason) }
