package service

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/card"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/identity"
)

// People are the registered people and their memories.
type People interface {
	People() []identity.Person
	Resolve(key string) string              // key of the person's memory, for any of their identities
	Registered(key string) *identity.Person // nil without one

	// Accept confirms that the memory of a person is theirs.
	Accept(ctx context.Context, p *identity.Person) error

	// Check determines the owners of the memories again.
	Check(ctx context.Context) error
}

// Acceptance confirms that the memory of an ID belongs to the person registered with it.
type Acceptance struct {
	ID   string `json:"id"`
	Keep bool   `json:"keep,omitempty"` // its content is the person's
}

// Accepted is the result of Accept.
type Accepted struct {
	ID     string `json:"id"`
	Memory string `json:"memory"` // key of the memory
}

// Accept gives a registered person the memory of their ID, whoever owned it before. If the
// memory has content, the caller must confirm with Keep that it is this person's.
func (sv *Service) Accept(ctx context.Context, a *Acceptance) (Accepted, error) {
	people := sv.o.People.People()
	i := slices.IndexFunc(people, func(p identity.Person) bool { return p.ID == a.ID })
	if i < 0 {
		return Accepted{}, invalid(fmt.Sprintf("no person of identity.users_file has the id %q; after a change of the file, reload the configuration with SIGHUP", a.ID))
	}
	if !a.Keep {
		found, err := sv.Find(ctx, Selector{User: people[i].Memory()})
		if err != nil {
			return Accepted{}, err
		}
		if held := slices.DeleteFunc(found.Groups, func(o ledger.Owned) bool { return o.Empty || o.Shared }); len(held) > 0 {
			return Accepted{}, invalid(fmt.Sprintf("the memory of %s is not empty; if it is this person's, confirm that with keep, else run graphiti-proxy memory forget --user %s first", a.ID, a.ID))
		}
	}
	if err := sv.o.People.Accept(ctx, &people[i]); err != nil {
		return Accepted{}, fmt.Errorf("accept %s: %w", a.ID, err)
	}
	return Accepted{ID: a.ID, Memory: people[i].Memory()}, nil
}

// PeopleRequest is the input of ListPeople.
type PeopleRequest struct {
	Find  string `json:"find,omitempty" help:"only people with this text in their name or id"`
	Limit int    `json:"limit,omitempty" help:"how many people"`
}

// PeopleList lists people with a memory, and registered people.
type PeopleList struct {
	People    []ListedPerson `json:"people"`
	AllPeople int            `json:"all_people"`
	Groups    []string       `json:"-"`
}

// ListedPerson is a person, an agent, an unregistered credential, or a system actor.
type ListedPerson struct {
	Name     string   `json:"name"`
	Means    Selector `json:"selector"` // selects them in operations
	Memories int      `json:"memories"` // number of their groups with messages
	Projects int      `json:"projects"`
	Last     string   `json:"last,omitempty"`
	Messages int64    `json:"messages"`
	Bytes    int64    `json:"bytes"`   // of the messages
	Waiting  int      `json:"waiting"` // lines that wait for a confirmation
	groups   []string

	// Only lists their groups if no selector covers them all. Means selects one of them.
	Only []string `json:"groups,omitempty"`

	Registered bool   `json:"registered,omitempty"`
	Admin      bool   `json:"admin,omitempty"`
	Off        bool   `json:"memory_off,omitempty"`
	Doubt      string `json:"doubt,omitempty"` // why their memory waits for a confirmation
}

// ListPeople lists people with a memory.
var ListPeople = Operation[PeopleRequest, PeopleList]{
	Spec:    Spec{Name: "memory/people", About: "All people with a memory, and the registered people", Metadata: true},
	Default: PeopleRequest{Limit: 200},
	Run:     withMemory((*Service).ListPeople),
	Audit: func(_ *PeopleRequest, out *PeopleList) Entry {
		return Entry{What: "list people", Who: "everybody", Groups: out.Groups}
	},
}

// ListPeople lists registered people and owners of groups: in single mode the owner first, then by
// their latest message.
func (sv *Service) ListPeople(ctx context.Context, in *PeopleRequest) (c PeopleList, err error) {
	if err := CheckLimit(in.Limit); err != nil {
		return c, err
	}
	known, err := sv.o.Pipeline.Owned(ctx, "")
	if err != nil {
		return c, err
	}
	k := census{sv: sv, by: make(map[string]*ListedPerson)}
	if k.extents, err = sv.o.Pipeline.Extents(ctx); err != nil {
		return c, err
	}
	if !sv.o.Multi {
		k.entry(sv.o.Owner, ListedPerson{Name: "you", Means: Selector{User: sv.o.Owner}})
	}
	for _, p := range sv.o.People.People() {
		s := k.entry(p.Memory(), ListedPerson{Name: cmp.Or(p.Name, p.ID), Means: Selector{User: p.Memory()}})
		if s.Registered, s.Admin, s.Off = true, p.Admin, p.Off; p.Doubt != nil {
			s.Doubt = p.Doubt.Why()
		}
	}
	for i := range known {
		k.add(&known[i])
	}
	c.Groups = slices.Sorted(maps.Keys(k.extents))
	k.list = slices.DeleteFunc(k.list, func(s *ListedPerson) bool { return !s.named(in.Find) })
	owner := func(s *ListedPerson) int {
		if !sv.o.Multi && s.Means == (Selector{User: sv.o.Owner}) {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(k.list, func(a, b *ListedPerson) int {
		return cmp.Or(cmp.Compare(owner(a), owner(b)), cmp.Compare(b.Last, a.Last), cmp.Compare(a.Name, b.Name))
	})
	c.AllPeople = len(k.list)
	c.People = make([]ListedPerson, 0, min(in.Limit, len(k.list)))
	for _, s := range k.list[:min(in.Limit, len(k.list))] {
		if s.Waiting, err = sv.pendingIn(ctx, s); err != nil {
			return c, err
		}
		c.People = append(c.People, *s)
	}
	return c, nil
}

// named reports whether a text is in the name or the key of a person.
func (s *ListedPerson) named(text string) bool {
	return strings.Contains(strings.ToLower(s.Name+"\n"+s.Means.User), strings.ToLower(text))
}

// pendingIn counts the pending lines in the groups of a person, except those of others in a
// project.
func (sv *Service) pendingIn(ctx context.Context, s *ListedPerson) (n int, err error) {
	targets := make([]graphiti.Target, len(s.groups))
	for i, g := range s.groups {
		targets[i].Group = g
	}
	lines, err := sv.cards().Lines(ctx, sv.o.State.Generations.Recallable(targets))
	for i := range lines {
		if l := &lines[i]; l.State == card.Pending && (l.Owner == s.Means.User || l.Owner == "" || s.Means.User == "") {
			n++
		}
	}
	return n, err
}

// census collects people from their groups.
type census struct {
	sv      *Service
	extents map[string]graphiti.Extent
	by      map[string]*ListedPerson
	list    []*ListedPerson
}

// entry returns the entry of a key, and adds one with the given fields if there is none.
func (k *census) entry(key string, otherwise ListedPerson) *ListedPerson {
	if s := k.by[key]; s != nil {
		return s
	}
	s := &otherwise
	k.by[key], k.list = s, append(k.list, s)
	return s
}

// add counts a group for its owner, and an agent's group for the agent too.
func (k *census) add(o *ledger.Owned) {
	of, holds := k.extents[o.Group]
	if !holds {
		return
	}
	person, means := k.owner(o)
	k.entry(o.Owner, ListedPerson{Name: person, Means: means}).count(o, of)
	if o.Scope == string(graphiti.ScopeAgent) { // only the group ID may name the agent
		k.entry("group\n"+o.Group, ListedPerson{Name: "an agent of " + person + ", " + o.Group, Means: Selector{Group: o.Group}}).count(o, of)
	}
}

// Size returns the size of a person's messages in words.
func (s *ListedPerson) Size() string {
	if s.Bytes < 1e6 {
		return fmt.Sprintf("%.1f kB", float64(s.Bytes)/1e3)
	}
	return fmt.Sprintf("%.1f MB", float64(s.Bytes)/1e6)
}

func (s *ListedPerson) count(o *ledger.Owned, of graphiti.Extent) {
	s.Memories++
	s.Messages, s.Bytes, s.groups = s.Messages+of.Messages, s.Bytes+of.Bytes, append(s.groups, o.Group)
	if o.Scope == string(graphiti.ScopeWorkspace) {
		s.Projects++
	}
	s.Last = max(s.Last, momentOf(of.Last))
	if s.Means.Group == "" {
		return
	}
	s.Only = s.groups
	if o.Scope == string(graphiti.ScopeUser) { // the best group for a single selector
		s.Means.Group = o.Group
	}
}

// owner returns the display name and the selector of a group's owner. An unregistered credential
// is known only by the hash of its fingerprint, so the selector names the group. So does a system
// actor's.
func (k *census) owner(o *ledger.Owned) (name string, means Selector) {
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
