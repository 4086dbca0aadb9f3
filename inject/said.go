package inject

import (
	"context"
	"slices"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/words"
)

// Recent finds messages that the backend may not have processed.
type Recent interface {
	// Recent returns up to max matching messages of a group, best first.
	Recent(ctx context.Context, group, query string, max int) ([]graphiti.Fact, error)
}

// said returns recent messages of each target that meet MinScore. The search is almost
// instant; one that takes longer is skipped.
func (m *Planner) said(query string, targets []graphiti.Target, deadline time.Time) [][]graphiti.Fact {
	if soon := time.Now().Add(m.opts().Timeout / unready); soon.Before(deadline) {
		deadline = soon
	}
	ctx, cancel := context.WithDeadline(m.base, deadline)
	defer cancel()
	out := make([][]graphiti.Fact, len(targets))
	for i, t := range targets {
		facts, err := m.opts().Recent.Recent(ctx, t.Group, query, m.opts().Asked)
		if err != nil {
			m.opts().Log.Debug("search recent messages failed", "error", err)
			continue
		}
		for j := range facts {
			if facts[j].Strength >= m.opts().MinScore {
				out[i] = append(out[i], facts[j])
			}
		}
	}
	return out
}

// unlearnt returns the recent messages without the sources of found facts. A message in
// several groups is removed from all of them.
func unlearnt(said, found [][]graphiti.Fact) [][]graphiti.Fact {
	known := make(map[string]bool)
	for i := range said {
		for j := range said[i] {
			if m := &said[i][j]; learnt(m, found) {
				known[m.Episode] = true
			}
		}
	}
	out := make([][]graphiti.Fact, len(said))
	for i := range said {
		for _, m := range said[i] {
			if !known[m.Episode] {
				out[i] = append(out[i], m)
			}
		}
	}
	return out
}

func learnt(said *graphiti.Fact, found [][]graphiti.Fact) bool {
	return slices.ContainsFunc(found, func(facts []graphiti.Fact) bool {
		return slices.ContainsFunc(facts, func(f graphiti.Fact) bool { return cameFrom(&f, said) && !wronglyOver(&f, facts) })
	})
}

// wronglyOver reports whether a fact ended when another began, and shares no entity with any
// such fact: Graphiti sometimes ends a fact for an unrelated one (getzep/graphiti#1728).
func wronglyOver(f *graphiti.Fact, all []graphiti.Fact) (wrongly bool) {
	for i := range all {
		o := &all[i]
		if o.ValidAt.IsZero() || o.ValidAt.Unix() != f.InvalidAt.Unix() {
			continue
		}
		ends := []string{"", f.Source, f.Target} // an unknown entity may be the same
		if f.Source == "" || slices.Contains(ends, o.Source) || slices.Contains(ends, o.Target) {
			return false
		}
		wrongly = true
	}
	return wrongly
}

// cameFrom reports whether a message is the source of a fact, or states the same. A fact
// that ended before the message is not from it. A fact that references the message is. A
// fact that is older than the message must contain all of it.
func cameFrom(f, said *graphiti.Fact) bool {
	if over(f, said.CreatedAt.Truncate(time.Second)) { // services round
		return false
	}
	if slices.ContainsFunc(f.Episodes, func(id string) bool { return slices.Contains(said.Episodes, id) }) {
		return true
	}
	earlier := f.CreatedAt.Before(said.CreatedAt) || !f.ReferenceTime.IsZero() && f.ReferenceTime.Before(said.CreatedAt.Add(-time.Second))
	if earlier && !words.Holds(f.Text, said.Text[len(said.Said):]) {
		return false
	}
	return words.Holds(said.Text, f.Text)
}

// over reports whether a fact had ended by a given time.
func over(f *graphiti.Fact, at time.Time) bool {
	return !f.InvalidAt.IsZero() && f.InvalidAt.Before(at) || !f.ExpiredAt.IsZero() && f.ExpiredAt.Before(at)
}

// count returns how many facts there are.
func count(found [][]graphiti.Fact) (n int) {
	for _, facts := range found {
		n += len(facts)
	}
	return n
}
