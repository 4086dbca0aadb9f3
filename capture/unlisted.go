package capture

import (
	"context"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// Some servers cannot list what they hold: over MCP on FalkorDB get_episodes
// asks another database than the one that holds the group. There a search is
// the only look. It shows a turn of which a fact was read, and says nothing of
// the others: those count as delivered, not as verified, and are not sent again.

const (
	// maxSearches bounds the searches of one look at a group.
	maxSearches = 4

	// shownFacts is how many facts a search for one turn asks for.
	shownFacts = 20

	// maxQuery bounds the text that is searched for, in characters.
	maxQuery = 400
)

// hide notes that episodes cannot be listed. shown says that a search shows
// what is there; else nothing does.
func (s *state) hide(shown bool, now time.Time) (changed bool) {
	changed = s.unlisted.IsZero() || shown && !s.shown
	if s.unlisted.IsZero() {
		s.unlisted = now
	}
	s.shown, s.hidden = s.shown || shown, true
	s.stalled, s.arrived = time.Time{}, now
	for _, l := range s.lanes {
		if len(l.under) > 0 && !l.active {
			l.lookAt = now
			s.place(l)
		}
	}
	return changed
}

// lists notes that a listing shows what was written.
func (s *state) lists() (changed bool) {
	changed = !s.unlisted.IsZero()
	s.listed, s.unlisted = true, time.Time{}
	return changed
}

// patience is how long a turn is searched for: not long where nothing is ever
// shown.
func (s *state) patience() time.Duration {
	if s.shown {
		return s.timing.showAfter
	}
	return s.timing.doubtAfter
}

// sawFacts says what follows where a group cannot be listed: v holds the
// messages of which a search shows a fact. A group's messages are worked off in
// order, so that what stands before one that is shown will not come any more.
func (s *state) sawFacts(a action, v seen, now time.Time) (f findings) {
	l := a.lane
	s.sight(l, true)
	last := -1
	found := make([]bool, len(l.under))
	for i, u := range l.under {
		if found[i] = u.recognise(v); found[i] {
			last = i
			l.worked = now
			s.evidence = max(s.evidence, u.start)
			s.typical = (3*s.typical + now.Sub(u.at)) / 4
		}
	}
	if last >= 0 {
		s.arrived = now
	}
	var left []*under
	for i, u := range l.under {
		silent := u.at
		if l.worked.After(silent) {
			silent = l.worked
		}
		over := i < last || a.began.Sub(silent) > s.patience()
		switch {
		case len(u.names) == 0, found[i] && !u.doubt:
			f.verified = append(f.verified, u)
		case !over || u.doubt && a.began.Sub(u.ended) <= s.timing.doubtAfter:
			left = append(left, u)
		case u.doubt && s.shown:
			f.lost = append(f.lost, u)
		case u.doubt:
			f.unknown = append(f.unknown, u)
		default:
			f.hidden = append(f.hidden, u)
		}
	}
	s.keep(l, left)
	l.lookWait = min(2*l.lookWait, s.timing.lastLook, max(s.patience()/2, s.timing.firstLook))
	if last >= 0 {
		l.lookWait = s.firstLook()
	}
	l.lookAt = now.Add(l.lookWait)
	s.place(l)
	return f
}

// search looks for the turns of a group where its listing shows nothing, and
// reports whether that was needed.
func (p *Pipeline) search(a action) (v seen, needed bool, err error) {
	p.mu.Lock()
	turns := append([]*under(nil), a.lane.under...)
	needed = p.state.hidden || len(turns) > 0 && a.began.Sub(turns[0].at) > p.state.timing.doubtAfter
	p.mu.Unlock()
	if !needed {
		return seen{}, false, nil
	}
	v = seen{names: make(map[string]bool)}
	for _, u := range turns[:min(len(turns), maxSearches)] {
		facts, err := p.factsLike(a.lane.group, &u.entry.Turn)
		if err != nil {
			return seen{}, true, err
		}
		for i := range facts {
			for _, other := range turns {
				for name, at := range other.times {
					if readFrom(&facts[i], at) {
						v.names[name] = true
					}
				}
			}
		}
	}
	return v, true, nil
}

func (p *Pipeline) factsLike(group string, t *ledger.Turn) (facts []graphiti.Fact, err error) {
	text := clip(t.User, maxQuery/2) + "\n" + clip(t.Assistant, maxQuery/2)
	err = p.call(func(ctx context.Context) (err error) {
		facts, err = p.opts().Memory.Search(ctx, []string{group}, text, shownFacts)
		return err
	})
	return facts, err
}

// readFrom reports whether a fact was read from the message of that time, as far
// as the memory tells: by the time of its message, else by when it became true.
func readFrom(f *graphiti.Fact, at time.Time) bool {
	if !f.ReferenceTime.IsZero() {
		return f.ReferenceTime.Truncate(time.Microsecond).Equal(at.Truncate(time.Microsecond))
	}
	return !f.ValidAt.IsZero() && f.ValidAt.Truncate(time.Second).Equal(at.Truncate(time.Second))
}
