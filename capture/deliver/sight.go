package deliver

import (
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// sight is a memory's ability to show stored turns. Some servers cannot list episodes: over
// MCP on FalkorDB, get_episodes of older servers queries a different database from the
// group's. There only a search can show a turn, by one of its facts. Turns without a fact
// count as delivered but not as verified, and are not sent again. Barriers stay invisible
// there too.
type sight struct {
	listed   bool      // a listing has shown stored messages
	shown    bool      // a search has shown a turn that a listing did not
	hidden   bool      // listings do not work: an empty listing proves nothing
	unlisted time.Time // discovery of hidden, or zero if listings work or were not tried
}

// hide records that listings do not work, and reports whether that changes the diagnosis.
// shown reports whether a search works instead.
func (s *sight) hide(shown bool, now time.Time) (changed bool) {
	changed = s.unlisted.IsZero() || shown && !s.shown
	if s.unlisted.IsZero() {
		s.unlisted = now
	}
	s.shown, s.hidden = s.shown || shown, true
	return changed
}

// lists records that a listing shows stored messages, and reports whether that is a change.
// Without the reset of hidden, a turn in doubt could wait forever: only a barrier decides
// it, and hidden suppresses barriers.
func (s *sight) lists() (changed bool) {
	changed = !s.unlisted.IsZero()
	*s = sight{listed: true}
	return changed
}

// diagnosis returns why listings do not verify turns.
func (s *sight) diagnosis() graphiti.Diagnosis {
	switch {
	case s.unlisted.IsZero():
		return graphiti.NoDiagnosis
	case s.shown:
		return graphiti.Unlisted
	}
	return graphiti.Unshown
}

// wentBlind polls every group again after listings proved useless.
func (m *machine) wentBlind(now time.Time) {
	m.stalled, m.sign = time.Time{}, now
	for _, g := range m.flying {
		g.pollAt = now
	}
}

// patience returns how long to search for a turn. It is short if the memory has never shown
// anything.
func (m *machine) patience() time.Duration {
	if m.sight.shown {
		return m.timing.ShowAfter
	}
	return m.timing.DoubtAfter
}

// found settles the turns of a group that cannot be listed. v holds the messages whose
// facts a search shows. A worker processes a group's messages in order, so a turn sent
// before a visible one will not appear any more.
func (m *machine) found(a action, v view, now time.Time) (fs findings) {
	g := a.group
	found, progress := m.matchView(g, v, now)
	newest := int64(0)
	for f := range found {
		newest = max(newest, f.pos)
	}
	var left []*flight
	for _, f := range g.flights {
		f.hidden = false
		silent := f.at
		if g.worked.After(silent) {
			silent = g.worked
		}
		over := f.pos < newest || a.began.Sub(silent) > m.patience()
		switch {
		case len(f.missing) == 0, found[f] && !f.doubt:
			fs.verified = append(fs.verified, f)
		case !over || f.doubt && a.began.Sub(f.ended) <= m.timing.DoubtAfter:
			left = append(left, f)
		case f.doubt && m.sight.shown:
			fs.lost = append(fs.lost, f)
		case f.doubt:
			fs.unknown = append(fs.unknown, f)
		default:
			fs.unverified = append(fs.unverified, f)
		}
	}
	m.setFlights(g, left)
	g.pollWait = min(2*g.pollWait, m.timing.LastLook, max(m.patience()/2, m.timing.FirstLook))
	if progress {
		fs.revived = m.recordProgress(now)
		g.pollWait = m.pollDelay(0)
	}
	g.pollAt = now.Add(g.pollWait)
	return fs
}
