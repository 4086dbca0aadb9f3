package capture

import (
	"context"
	"errors"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
)

// trouble is what keeps the turns of a group from being handed over, or from
// being seen, until that works again for the same group: that it works for
// another one says nothing.
type trouble struct {
	since time.Time
	last  time.Time // zero when it was not even tried
	why   string
	to    string // do about it; may be empty
}

// troubled notes that an action for a lane has failed. That it was not tried
// says less than what was before.
func (s *state) troubled(l *lane, k kind, why, to string, tried bool, now time.Time) {
	t, had := l.trouble[k]
	if !had {
		t.since = now
	}
	if !had || tried {
		t.why, t.to = why, to
	}
	if tried {
		t.last = now
	}
	if l.trouble == nil {
		l.trouble = make(map[kind]trouble, 1)
	}
	l.trouble[k] = t
	s.troubles[l] = struct{}{}
}

// fine notes that an action for a lane has worked.
func (s *state) fine(l *lane, k kind) {
	delete(l.trouble, k)
	if len(l.trouble) == 0 {
		delete(s.troubles, l)
	}
}

// failing is the trouble that there is in all: since when, and what it was
// last; zero when there is none.
func (s *state) failing() (all trouble) {
	for l := range s.troubles {
		for _, t := range l.trouble {
			since := t.since
			if !all.since.IsZero() && all.since.Before(since) {
				since = all.since
			}
			if all.why == "" || t.last.After(all.last) {
				all = t
			}
			all.since = since
		}
	}
	return all
}

// failedLocked notes trouble.
func (p *Pipeline) failedLocked(a action, err error) {
	if errors.Is(err, context.Canceled) {
		return // we stop
	}
	why := err.Error()
	if asked := retryAfter(err); asked > 0 {
		why += "; it asked to be left alone for " + asked.String()
	}
	p.state.troubled(a.lane, a.kind, clip(why, ledger.MaxReason), remedyOf(err), !errors.Is(err, errNotTried), time.Now())
	p.tellTroubleLocked(err)
}

// workedLocked notes that there is none.
func (p *Pipeline) workedLocked(a action) {
	p.state.fine(a.lane, a.kind)
	p.tellTroubleLocked(nil)
}

// tellTroubleLocked logs where trouble begins, and where all of it is over;
// what comes and goes, once a minute.
func (p *Pipeline) tellTroubleLocked(err error) {
	switch there := len(p.state.troubles) > 0; {
	case there == p.troubleTold:
	case !there:
		p.troubleTold = false
		p.opts().Log.Info("turns are delivered again")
	case err != nil && time.Since(p.troubleLog) > time.Minute:
		p.troubleTold, p.troubleLog = true, time.Now()
		p.opts().Log.Warn("turns cannot be delivered and wait", "error", err, "to_do", remedyOf(err))
	}
}
