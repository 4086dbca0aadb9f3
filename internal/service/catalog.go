package service

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// Catalog lists what there is memory of, the newest first.
type Catalog struct {
	Memories         []Kept         `json:"memories"` // a person's own, and of projects and agents
	Conversations    []Conversation `json:"conversations"`
	AllMemories      int            `json:"all_memories"` // listed or not
	AllConversations int            `json:"all_conversations"`

	Note   string   `json:"note,omitempty"` // what cannot be listed
	Groups []string `json:"-"`              // that were looked into
}

// Span counts messages, and says when the first and the last of them were said.
type Span struct {
	Messages int    `json:"messages"`
	First    string `json:"first,omitempty"`
	Last     string `json:"last,omitempty"`
}

// Kept describes the memory in one group.
type Kept struct {
	Name  string `json:"name"` // as people call it; the group's id where no name is known
	Scope string `json:"scope"`
	Key   string `json:"key,omitempty"`
	Group string `json:"group"`
	Span
	Shared    bool   `json:"shared,omitempty"`    // others wrote to it too
	Uncounted string `json:"uncounted,omitempty"` // why it is not known what it holds
}

// Conversation is one conversation, wherever its messages are kept.
type Conversation struct {
	Session string `json:"session,omitempty"` // its id, where it is known
	Hash    string `json:"hash"`              // which stands for the id
	Begins  string `json:"begins,omitempty"`  // what was said first, cut
	In      string `json:"in"`                // the name of the memory that it is in
	Group   string `json:"group"`             // which that is
	Span
}

const (
	// catalogTimeout bounds a look into all groups: what was not reached then is
	// named, and not counted.
	catalogTimeout = 20 * time.Second

	maxBegins = 80 // characters that are shown of a conversation
)

// CheckLimit returns an error unless n is between 1 and maxListed.
func CheckLimit(n int) error {
	if n < 1 || n > maxListed {
		return invalid(fmt.Sprintf("limit must be 1 to %d", maxListed))
	}
	return nil
}

// Catalog lists a person's memories: their own, their projects and agents, and their
// conversations; of each kind the newest ones.
func (sv *Service) Catalog(ctx context.Context, s Selector, limit int) (Catalog, error) {
	c := Catalog{Memories: []Kept{}, Conversations: []Conversation{}}
	if err := CheckLimit(limit); err != nil {
		return c, err
	}
	person := s.Whose()
	groups, err := sv.theirs(ctx, s)
	if err != nil {
		return c, err
	}
	// What a person says of themselves in a project is in their own memory too:
	// the conversation is the project's.
	slices.SortStableFunc(groups, func(a, b ledger.Owned) int { return cmp.Compare(rank(a.Scope), rank(b.Scope)) })
	if sv.o.Remote {
		c.Note = notAllGroups
	}
	look, cancel := context.WithTimeout(ctx, catalogTimeout)
	defer cancel()
	l := catalog{conversations: make(map[string]*counted)}
	if len(groups) > 1 {
		l.seen = make(map[uint64]struct{})
	}
	var failed error
	for _, o := range groups {
		c.Groups = append(c.Groups, o.Group)
		k := Kept{Name: nameOf(o, person), Scope: o.Scope, Key: o.Key, Group: o.Group, Shared: o.Shared}
		if err := sv.countInto(look, &l, &k); err != nil {
			failed = err
			k.Span, k.Uncounted = Span{}, err.Error()
		}
		if k.Messages > 0 && o.Scope != string(graphiti.ScopeSession) || k.Uncounted != "" {
			c.Memories = append(c.Memories, k)
		}
	}
	if failed != nil && !slices.ContainsFunc(c.Memories, func(k Kept) bool { return k.Uncounted == "" }) && len(l.conversations) == 0 {
		return c, failed
	}
	c.AllMemories, c.AllConversations = len(c.Memories), len(l.conversations)
	slices.SortStableFunc(c.Memories, func(a, b Kept) int { return cmp.Compare(b.Last, a.Last) })
	c.Memories = c.Memories[:min(limit, len(c.Memories))]
	c.Conversations, err = sv.newest(look, &l, limit)
	return c, err
}

// notAllGroups says which groups are known of a memory that does not list its own.
const notAllGroups = "Graphiti cannot list its groups: the list contains the person's own and the groups that this proxy wrote to"

// theirs finds all groups that are a person's; or one group, because no selector means all
// that is of, for example, a system actor. The selector names nothing else.
func (sv *Service) theirs(ctx context.Context, s Selector) ([]ledger.Owned, error) {
	switch {
	case s.Group != "" && s == (Selector{User: s.User, Credential: s.Credential, Group: s.Group}):
		return sv.oneGroup(ctx, s)
	case s != (Selector{User: s.User, Credential: s.Credential}):
		return nil, invalid("only a person's memories can be listed: name only user or credential, or one group")
	case s == (Selector{}) && sv.o.Multi:
		return nil, invalid("name a person with user or credential")
	case s == (Selector{}):
		s.User = sv.o.Owner
	}
	return sv.groups(ctx, s)
}

// oneGroup is a group with what is known of it.
func (sv *Service) oneGroup(ctx context.Context, s Selector) ([]ledger.Owned, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	known, err := sv.o.Pipeline.Owned(ctx, "")
	if i := slices.IndexFunc(known, func(o ledger.Owned) bool { return o.Group == s.Group }); i >= 0 {
		return known[i : i+1], err
	}
	scope, _ := graphiti.ScopeOf(s.Group)
	return []ledger.Owned{{Group: s.Group, Scope: string(scope)}}, err
}

// rank is the place of a scope among those in which a conversation is looked for.
func rank(scope string) int {
	switch graphiti.Scope(scope) {
	case graphiti.ScopeSession:
		return 0
	case graphiti.ScopeWorkspace:
		return 1
	case graphiti.ScopeUser:
		return 2
	}
	return 3
}

// nameOf is how people call the memory in a group; person is whose it is.
func nameOf(o ledger.Owned, person string) string {
	switch graphiti.Scope(o.Scope) {
	case graphiti.ScopeWorkspace:
		return cmp.Or(shortWorkspace(o.Key), o.Group)
	case graphiti.ScopeUser:
		return person
	case graphiti.ScopeSession:
		return cmp.Or(strings.TrimPrefix(o.Key, "session:"), o.Group)
	}
	return o.Group
}

// countInto counts what a group holds, what waits for it included.
func (sv *Service) countInto(ctx context.Context, l *catalog, k *Kept) error {
	var all spanned
	err := sv.headings(ctx, k.Group, func(h *graphiti.Heading, text string) {
		all.count(h.Said)
		l.add(k, h, text)
	})
	k.Span = all.span()
	return err
}

// catalog counts messages by the conversation that they are in.
type catalog struct {
	conversations map[string]*counted // by what stands for their ids
	seen          map[uint64]struct{} // their messages: one may be in several groups; nil: there is one group
	last          *counted            // messages of one conversation come one after the other
}

type counted struct {
	Conversation
	spanned
	begun time.Time // when that was said which it begins with
	place int64     // where that stands in its group
	from  string    // the group
}

// add counts a message of a group in its conversation.
func (l *catalog) add(k *Kept, h *graphiti.Heading, text string) {
	hash, session := h.Talk, ""
	if k.Scope == string(graphiti.ScopeSession) && k.Key != "" {
		hash, session = graphiti.SessionHash(k.Key), nameOf(ledger.Owned{Group: k.Group, Scope: k.Scope, Key: k.Key}, "")
	} else if h.Role == graphiti.RoleSystem {
		return // a text that was promoted, and not said
	}
	if hash == "" {
		return
	}
	if l.seen != nil {
		if _, again := l.seen[h.Name]; again {
			return
		}
		l.seen[h.Name] = struct{}{}
	}
	t := l.last
	if t == nil || t.Hash != hash {
		t = l.conversations[hash]
		l.last = t
	}
	if t == nil {
		t = &counted{Conversation: Conversation{Session: session, Hash: hash, In: k.Name, Group: k.Group}}
		l.conversations[hash] = t
	}
	t.count(h.Said)
	if h.Role == graphiti.RoleUser && (t.from == "" || h.Said.Before(t.begun)) {
		t.Begins, t.begun, t.place, t.from = beginning(text), h.Said, h.Place, k.Group
	}
}

// newest returns the conversations that went on last, with what they begin with.
func (sv *Service) newest(ctx context.Context, l *catalog, limit int) ([]Conversation, error) {
	all := slices.SortedFunc(maps.Values(l.conversations), func(a, b *counted) int { return cmp.Or(b.last.Compare(a.last), cmp.Compare(a.Hash, b.Hash)) })
	all = all[:min(limit, len(all))]
	if err := sv.readBeginnings(ctx, all); err != nil {
		return []Conversation{}, err
	}
	list := make([]Conversation, len(all))
	for i, t := range all {
		list[i], list[i].Span = t.Conversation, t.span()
	}
	return list, nil
}

// readBeginnings reads what conversations begin with, where that is not known yet.
func (sv *Service) readBeginnings(ctx context.Context, all []*counted) error {
	o, ok := sv.o.Memory.Outliner()
	if !ok {
		return nil
	}
	at := make(map[string]map[int64]*counted) // by the group and the place
	for _, t := range all {
		if t.from == "" || t.Begins != "" || t.place == 0 {
			continue
		}
		if at[t.from] == nil {
			at[t.from] = make(map[int64]*counted)
		}
		at[t.from][t.place] = t
	}
	for group, places := range at {
		list := slices.Sorted(maps.Keys(places))
		episodes, err := o.EpisodesAt(ctx, group, list)
		if err != nil {
			return withRemedy(err)
		}
		if len(episodes) != len(list) { // one was deleted a moment ago
			continue
		}
		for i := range episodes {
			places[list[i]].Begins = beginning(episodes[i].Sides()[0].Text)
		}
	}
	return nil
}

// beginning returns the start of a text as one line, cut.
func beginning(text string) string { return cutTo(text, maxBegins) }
