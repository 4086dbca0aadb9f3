package service

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// PeopleRequest is the input of Everybody.
type PeopleRequest struct {
	Limit int `json:"limit,omitempty"`
}

// Crowd lists everybody who has a memory, or may have one.
type Crowd struct {
	People    []Somebody `json:"people"`
	AllPeople int        `json:"all_people"`
	Groups    []string   `json:"-"`
}

// Somebody is a person, an agent of theirs, a credential that nobody is registered for, or
// a system actor.
type Somebody struct {
	Name     string   `json:"name"`
	Means    Selector `json:"selector"` // how operations name them
	Memories int      `json:"memories"` // groups that hold something of theirs
	Projects int      `json:"projects"`
	Last     string   `json:"last,omitempty"`

	// Only are their groups, where no selector means them all: Means names one of them.
	Only []string `json:"groups,omitempty"`

	Registered bool   `json:"registered,omitempty"`
	Admin      bool   `json:"admin,omitempty"`
	Off        bool   `json:"memory_off,omitempty"`
	Doubt      string `json:"doubt,omitempty"` // why they have no memory until somebody confirms them
}

// Everybody lists those who have a memory.
var Everybody = Operation[PeopleRequest, Crowd]{
	Spec:    Spec{Name: "memory/people", About: "All people with a memory, and the registered people"},
	Default: PeopleRequest{Limit: 200},
	Run: func(ctx context.Context, h *Host, in *PeopleRequest) (Crowd, error) {
		return h.Memory.Everybody(ctx, in.Limit)
	},
	Audit: func(_ *PeopleRequest, out *Crowd) Entry {
		return Entry{What: "list people", Who: "everybody", Groups: out.Groups}
	},
}

// Everybody lists the registered people, and all who own a group: in single mode the
// owner first, then whose memory got something last.
func (sv *Service) Everybody(ctx context.Context, limit int) (c Crowd, err error) {
	if err := CheckLimit(limit); err != nil {
		return c, err
	}
	known, err := sv.o.Pipeline.Owned(ctx, "")
	if err != nil {
		return c, err
	}
	k := crowd{sv: sv, latest: make(map[string]time.Time), by: make(map[string]*Somebody)}
	if k.told, err = sv.latest(ctx, k.latest); err != nil {
		return c, err
	}
	if !sv.o.Multi {
		k.somebody(sv.o.Owner, Somebody{Name: "you", Means: Selector{User: sv.o.Owner}})
	}
	for _, p := range sv.o.People.All() {
		s := k.somebody(p.Memory, Somebody{Name: cmp.Or(p.Name, p.ID), Means: Selector{User: p.Memory}})
		s.Registered, s.Admin, s.Off, s.Doubt = true, p.Admin, p.Off, p.Doubt
	}
	for i := range known {
		k.add(&known[i])
		if !slices.Contains(c.Groups, known[i].Group) {
			c.Groups = append(c.Groups, known[i].Group)
		}
	}
	owner := func(s *Somebody) int {
		if !sv.o.Multi && s.Means == (Selector{User: sv.o.Owner}) {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(k.list, func(a, b *Somebody) int {
		return cmp.Or(cmp.Compare(owner(a), owner(b)), cmp.Compare(b.Last, a.Last), cmp.Compare(a.Name, b.Name))
	})
	c.AllPeople = len(k.list)
	c.People = make([]Somebody, 0, min(limit, len(k.list)))
	for _, s := range k.list[:min(limit, len(k.list))] {
		c.People = append(c.People, *s)
	}
	return c, nil
}

// latest finds, of all groups that hold something, when the message was said that each got
// last; ok is false where the memory does not say it.
func (sv *Service) latest(ctx context.Context, all map[string]time.Time) (ok bool, err error) {
	o, ok := sv.o.Memory.Outliner()
	if !ok {
		return false, nil
	}
	return true, withRemedy(o.Latest(ctx, func(group string, said time.Time) { all[group] = said }))
}

// crowd collects people from the groups that are theirs.
type crowd struct {
	sv     *Service
	told   bool // the memory says which groups hold something
	latest map[string]time.Time
	by     map[string]*Somebody
	list   []*Somebody
}

// somebody returns who is known by a key; a new one is as it is given.
func (k *crowd) somebody(key string, otherwise Somebody) *Somebody {
	if s := k.by[key]; s != nil {
		return s
	}
	s := &otherwise
	k.by[key], k.list = s, append(k.list, s)
	return s
}

// add counts a group for its owner, and that of an agent for the agent, too.
func (k *crowd) add(o *ledger.Owned) {
	last, holds := k.latest[o.Group]
	if k.told && !holds {
		return
	}
	person, means := k.owner(o)
	k.somebody(o.Owner, Somebody{Name: person, Means: means}).count(o, last)
	if o.Scope == string(graphiti.ScopeAgent) { // which agent, only the group's id may say
		k.somebody("group\n"+o.Group, Somebody{Name: "an agent of " + person + ", " + o.Group, Means: Selector{Group: o.Group}}).count(o, last)
	}
}

func (s *Somebody) count(o *ledger.Owned, last time.Time) {
	s.Memories++
	if o.Scope == string(graphiti.ScopeWorkspace) {
		s.Projects++
	}
	s.Last = max(s.Last, momentOf(last))
	if s.Means.Group == "" {
		return
	}
	if !slices.Contains(s.Only, o.Group) {
		s.Only = append(s.Only, o.Group)
	}
	if o.Scope == string(graphiti.ScopeUser) { // the best that one selector can mean
		s.Means.Group = o.Group
	}
}

// owner is how people call the owner of a group, and the selector that means them. Of a
// credential that nobody is registered for, only a hash of its fingerprint is kept, so
// that its groups are named one by one; so are those of a system actor.
func (k *crowd) owner(o *ledger.Owned) (name string, means Selector) {
	if tenant, person, ok := strings.Cut(strings.TrimPrefix(o.Owner, "sha256:"), "|"); ok && strings.HasPrefix(o.Owner, "sha256:") {
		name = "an unregistered credential, " + tenant[:min(8, len(tenant))] + "…"
		if actor, isActor := strings.CutPrefix(person, "system:"); isActor {
			name = "the system actor " + actor + " of " + name
		} else if person != "user:credential" && person != "" {
			name = strings.TrimPrefix(person, "user:") + ", as claimed by " + name
		}
		return name, Selector{Group: o.Group}
	}
	if actor, ok := strings.CutPrefix(o.Owner, "system:"); ok {
		return "the system actor " + actor, Selector{Group: o.Group}
	}
	if o.Owner == "" {
		return "an unknown owner", Selector{Group: o.Group}
	}
	if !k.sv.o.Multi && o.Owner == k.sv.o.Owner {
		return "you", Selector{User: o.Owner}
	}
	return strings.TrimPrefix(o.Owner, "user:"), Selector{User: o.Owner}
}
