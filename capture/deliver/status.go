package deliver

import (
	"cmp"
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
	Episodes  int       // messages that the memory accepted since the start
	Failing   time.Time // start of the earliest current failure, or zero
	LastError string
	Remedy    string
	Quiet     time.Time          // last progress while turns are in flight, or zero
	Stalled   time.Time          // start of a silence, or zero
	Diagnosis graphiti.Diagnosis // most likely reason for a stall or a long quiet
}

// Status returns the current state of delivery.
func (l *Loop) Status() Progress {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := Progress{Lost: l.lost, Episodes: l.episodes, Failing: l.failure.since, LastError: l.failure.why, Remedy: l.failure.remedy}
	for _, s := range l.senders {
		p.Stalled = earliest(p.Stalled, s.silent)
		if s.flight != nil {
			p.InFlight += 1 + len(s.flight.Joined)
			p.Quiet = earliest(p.Quiet, s.sign)
		}
	}
	silent := !p.Stalled.IsZero() || !p.Quiet.IsZero() && time.Since(p.Quiet) >= l.silence()
	for _, e := range l.erasing {
		silent = silent || errors.Is(e.err, ErrQuiet)
	}
	if silent {
		p.Diagnosis = l.diagnosis()
	}
	return p
}

// earliest returns the earlier one of two times; a zero time is none.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
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

// failing is a part of delivery that may fail: copying to a group, or deleting in it.
type failing struct {
	group   string
	deletes bool
}

// ofLedger is the part that reads and writes the ledger.
var ofLedger = failing{"", false}

// failure is the newest failure, until its part succeeds.
type failure struct {
	at          failing
	since       time.Time // start of the earliest failure that may last, or zero
	why, remedy string
}

// report records the result of a part.
func (l *Loop) report(at failing, err error) {
	switch {
	case errors.Is(err, context.Canceled):
	case err != nil:
		f := failure{at, l.failure.since, err.Error(), cmp.Or(graphiti.Remedy(err), "nothing yet: delivery retries by itself; graphiti-proxy test-connection checks the memory")}
		if f.since.IsZero() {
			f.since = time.Now()
			l.o.Log.Warn("delivery failed, turns stay queued", "error", err, "to_do", f.remedy)
		}
		if asked := retryAfter(err); asked > 0 {
			f.why += "; it asked for a pause of " + asked.String()
		}
		f.why = clip(f.why)
		l.failure = f
	case at == l.failure.at && !l.failure.since.IsZero():
		l.failure = failure{}
		l.o.Log.Info("delivery works again")
	}
}

// clip limits a reason to maxReason.
func clip(reason string) string { return graphiti.Shorten(reason, "…", maxReason) }
