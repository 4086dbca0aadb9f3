package deliver

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// bytesPerToken is an estimate.
const bytesPerToken = 4

// maxReason is the most characters of a stored delivery error.
const maxReason = 300

// Progress is the state of delivery.
type Progress struct {
	InFlight  int
	Lost      int       // turns lost by the memory and sent again
	Episodes  int       // messages that the memory accepted since the start
	Tokens    int       // estimate for their texts
	Failing   time.Time // start of the earliest current failure, or zero
	LastError string
	Remedy    string
	Quiet     time.Time // last progress while turns are in flight, or zero
	Stalled   time.Time // start of a silence, or zero
	NextTest  time.Time // of a silent worker, or zero
	Unlisted  time.Time // since when listings cannot verify turns, or zero
	Breaker   string    // open: the memory is down and not called; half-open: one call is due; closed

	// Diagnosis is the most likely reason for a stall, a long quiet or missing listings.
	Diagnosis graphiti.Diagnosis
}

// Status returns the current state of delivery.
func (l *Loop) Status() Progress {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.shown
}

// publish updates the state that Status returns.
func (l *Loop) publish() {
	now := time.Now()
	p := Progress{Lost: l.lost, Episodes: l.episodes, Tokens: l.chars / bytesPerToken, Breaker: "closed"}
	if l.fails >= opensAfter {
		if p.Breaker = "half-open"; l.until.After(now) {
			p.Breaker = "open"
		}
	}
	for _, s := range l.senders {
		p.InFlight += len(s.flights)
		if len(s.flights) == 0 {
			continue
		}
		if p.Quiet.IsZero() || s.sign.Before(p.Quiet) {
			p.Quiet = s.sign
		}
		if !s.silent.IsZero() {
			if p.Stalled.IsZero() || s.silent.Before(p.Stalled) {
				p.Stalled = s.silent
			}
			if p.NextTest.IsZero() || s.testAt.Before(p.NextTest) {
				p.NextTest = s.testAt
			}
		}
	}
	for at := range l.failures {
		if s := l.senders[l.key(at.group)]; at.act == look && (s == nil || !slices.Contains(s.groups(), at.group)) {
			l.worked(at) // nothing is left to list
		}
	}
	if f := l.failures.all(); !f.since.IsZero() {
		p.Failing, p.LastError, p.Remedy = f.since, f.why, f.remedy
	}
	if l.blind != graphiti.NoDiagnosis {
		p.Unlisted, p.Diagnosis = l.since, l.blind
	}
	if !p.Stalled.IsZero() || !p.Quiet.IsZero() && now.Sub(p.Quiet) >= l.run.timing.Silence {
		p.Diagnosis = l.diagnosis()
	}
	for _, e := range l.erased { // only this goroutine writes it
		if errors.Is(e.err, ErrQuiet) {
			p.Diagnosis = l.diagnosis()
		}
	}
	l.mu.Lock()
	l.shown = p
	l.mu.Unlock()
}

// diagnosis returns the most likely reason for a silence.
func (l *Loop) diagnosis() graphiti.Diagnosis {
	if d := graphiti.Diagnose(l.search); d != graphiti.NoDiagnosis {
		return d
	}
	switch {
	case l.o.Apart:
		return graphiti.ModelFails
	case !l.listed:
		return graphiti.NeverKept
	}
	return graphiti.WorkerDead
}

// failures holds the current failures. Only a success for the same group and kind of action
// ends one.
type failures map[failing]failure

type failing struct {
	group string
	act   act
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

// failedAt records the failure of an action.
func (l *Loop) failedAt(at failing, err error) {
	if errors.Is(err, context.Canceled) {
		return
	}
	now := time.Now()
	f := failure{since: now, last: now, why: err.Error(), remedy: remedyOf(err)}
	if before, had := l.failures[at]; had {
		f.since = before.since
	}
	if asked := retryAfter(err); asked > 0 {
		f.why += "; it asked for a pause of " + asked.String()
	}
	f.why = clip(f.why)
	l.failures[at] = f
	if !l.failing && now.Sub(l.failLog) > time.Minute { // log intermittent failures at most once a minute
		l.failing, l.failLog = true, now
		l.o.Log.Warn("delivery failed, turns stay queued", "error", err, "to_do", f.remedy)
	}
}

func (l *Loop) worked(at failing) {
	delete(l.failures, at)
	if l.failing && len(l.failures) == 0 {
		l.failing = false
		l.o.Log.Info("delivery works again")
	}
}

// clip limits a reason to maxReason.
func clip(reason string) string { return graphiti.Shorten(reason, "…", maxReason) }
