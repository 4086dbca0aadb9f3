package deliver

import (
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// sight is what a memory shows of what it holds. Some servers cannot list it:
// over MCP on FalkorDB get_episodes of older servers asks another database than the
// one that holds the group. There a search is the only look. It shows a turn when one of
// its facts is found, and says nothing of the others: those count as delivered, not
// as verified, and are not sent again. No barrier shows there either.
type sight struct {
	listed   bool      // a listing has shown what was written
	shown    bool      // a search has, where a listing did not
	hidden   bool      // it is not listed: a listing without an episode proves nothing any more
	unlisted time.Time // since when that is known; zero: it is listed, or it is not known
}

// hide notes that episodes cannot be listed, and reports whether that is new.
// shown says that a search shows what is there; else nothing does.
func (s *sight) hide(shown bool, now time.Time) (changed bool) {
	changed = s.unlisted.IsZero() || shown && !s.shown
	if s.unlisted.IsZero() {
		s.unlisted = now
	}
	s.shown, s.hidden = s.shown || shown, true
	return changed
}

// lists notes that a listing shows what was written, and reports whether that
// is news.
func (s *sight) lists() (changed bool) {
	changed = !s.unlisted.IsZero()
	s.listed, s.unlisted = true, time.Time{}
	return changed
}

// diagnosis says why turns are not verified by a listing.
func (s *sight) diagnosis() graphiti.Diagnosis {
	switch {
	case s.unlisted.IsZero():
		return graphiti.NoDiagnosis
	case s.shown:
		return graphiti.Unlisted
	}
	return graphiti.Unshown
}

// wentBlind looks at every group again: nothing is listed any more.
func (m *machine) wentBlind(now time.Time) {
	m.stalled, m.sign = time.Time{}, now
	for _, g := range m.flying {
		g.lookAt = now
	}
}

// patience is how long a turn is searched for: not long where nothing is ever
// shown.
func (m *machine) patience() time.Duration {
	if m.sight.shown {
		return m.timing.ShowAfter
	}
	return m.timing.DoubtAfter
}

// found draws conclusions where a group cannot be listed: v holds the messages
// whose facts a search shows. A group's messages are worked off in order,
// so that what was sent before one that is shown will not come any more.
func (m *machine) found(a action, v view, now time.Time) (fs findings) {
	g := a.group
	found, progress := m.recognise(g, v, now)
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
	m.keep(g, left)
	g.lookWait = min(2*g.lookWait, m.timing.LastLook, max(m.patience()/2, m.timing.FirstLook))
	if progress {
		fs.revived = m.works(now)
		g.lookWait = m.firstLook(0)
	}
	g.lookAt = now.Add(g.lookWait)
	return fs
}
