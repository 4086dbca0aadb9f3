package ledger

import (
	"context"
	"errors"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cache/database"
)

// Hold is the age of messages that are never deleted, not even on request.
const Hold time.Duration = -1

// Retention determines the ages at which messages are deleted. An age of 0 keeps them.
type Retention struct {
	Age time.Duration            // of all others
	Of  map[string]time.Duration // by the key of a project or a person

	Facts, Work time.Duration // other ages of facts, and of messages about the work of agents
}

// Off reports whether everything is kept.
func (r *Retention) Off() bool { return r.Shortest() == 0 && r.Facts == 0 && r.Work == 0 }

// For returns the age for a group with these owners: a hold, or else the shortest age of its
// projects and owners, or else that of all others.
func (r *Retention) For(owners []Owned) time.Duration {
	age, found := r.Age, false
	for _, o := range owners {
		for _, key := range []string{o.Owner, o.Key} {
			switch own, ok := r.Of[key]; {
			case !ok:
			case own == Hold:
				return Hold
			case !found || own > 0 && (own < age || age == 0):
				age, found = own, true
			}
		}
	}
	return age
}

// Shortest returns the shortest age, or 0 if all are kept.
func (r *Retention) Shortest() time.Duration {
	shortest := max(r.Age, 0)
	for _, age := range r.Of {
		if age > 0 && (age < shortest || shortest == 0) {
			shortest = age
		}
	}
	return shortest
}

// Expired counts the messages, facts and messages about work of a group that are older than their
// age.
type Expired struct {
	Group    string        `json:"group"`
	Owners   []Owned       `json:"owners"`
	Age      time.Duration `json:"-"`
	Held     bool          `json:"held,omitempty"` // they stay
	Messages int           `json:"messages"`
	Facts    int           `json:"facts,omitempty"` // deleted for their own age
	Work     int           `json:"work,omitempty"`  // the same
}

// errDry undoes a deletion.
var errDry = errors.New("nothing is deleted")

// Expire deletes messages that are older than their age, the facts that only they support, and
// facts that are older than theirs. A history cannot restore their turns. Copies in Graphiti stay. With dry, it undoes each
// deletion, and counts the held messages, too.
func (s *Ledger) Expire(ctx context.Context, r *Retention, now time.Time, dry bool) (expired []Expired, err error) {
	shortest := r.Shortest()
	if r.Off() {
		return nil, nil
	}
	owned, err := s.Owned(ctx, "")
	if err != nil {
		return nil, err
	}
	owners := make(map[string][]Owned)
	for _, o := range owned {
		owners[o.Group] = append(owners[o.Group], o)
	}
	extents, err := s.Extents(ctx)
	if err != nil {
		return nil, err
	}
	for _, g := range slices.Sorted(maps.Keys(extents)) {
		e := Expired{Group: g, Owners: owners[g], Age: r.For(owners[g])}
		if e.Held = e.Age == Hold; e.Held {
			e.Age = shortest
		}
		if e.Held && !dry {
			continue
		}
		err := s.write("delete old messages", func(tx *database.Tx) error {
			tx.Checkpoint()
			err := s.expireIn(tx, &e, r, extents[g].First, now)
			if err == nil && dry {
				err = errDry
			}
			return err
		})
		if err != nil && !errors.Is(err, errDry) {
			return expired, err
		}
		if e.Messages+e.Facts+e.Work > 0 {
			expired = append(expired, e)
		}
	}
	return expired, nil
}

// expireIn deletes and counts the old messages and facts of a group, whose first message is from first.
func (s *Ledger) expireIn(tx *database.Tx, e *Expired, r *Retention, first, now time.Time) (err error) {
	e.Messages, e.Facts, e.Work = 0, 0, 0
	if r.Facts > 0 {
		e.Facts, err = s.memory.DeleteFacts(tx, e.Group, now.Add(-r.Facts))
	}
	if before := now.Add(-r.Work); err == nil && r.Work > 0 && first.Before(before) {
		var names []string
		names, _, err = s.forgetKept(tx, Part{Group: e.Group, before: before, work: true}, math.MaxInt64, time.Now())
		e.Work = len(names)
	}
	if before := now.Add(-e.Age); err == nil && e.Age > 0 && first.Before(before) {
		var names []string
		names, _, err = s.forgetKept(tx, Part{Group: e.Group, before: before}, math.MaxInt64, time.Now())
		e.Messages = len(names)
	}
	return err
}
