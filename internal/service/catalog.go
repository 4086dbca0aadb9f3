package service

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// Catalog lists memories and conversations, the newest first.
type Catalog struct {
	Memories         []Kept         `json:"memories"` // the person's own memory, projects and agents
	Conversations    []Conversation `json:"conversations"`
	AllMemories      int            `json:"all_memories"` // including unlisted ones
	AllConversations int            `json:"all_conversations"`

	Groups []string `json:"-"` // groups that were read
}

// Span is the number of messages and the times of the first and the last one.
type Span struct {
	Messages int    `json:"messages"`
	First    string `json:"first,omitempty"`
	Last     string `json:"last,omitempty"`

	first, last time.Time
}

func (s *Span) count(at time.Time) {
	s.Messages++
	if at.IsZero() {
		return
	}
	if s.first.IsZero() || at.Before(s.first) {
		s.first = at
	}
	if at.After(s.last) {
		s.last = at
	}
}

// counted sets the times for display, after all messages are counted.
func (s *Span) counted() { s.First, s.Last = momentOf(s.first), momentOf(s.last) }

// Kept describes the memory in one group.
type Kept struct {
	Name  string `json:"name"` // display name, or the group ID
	Scope string `json:"scope"`
	Key   string `json:"key,omitempty"`
	Group string `json:"group"`
	Span
	Shared bool `json:"shared,omitempty"` // the group has other owners
}

// Conversation is one conversation in all its groups.
type Conversation struct {
	Session string `json:"session,omitempty"` // its ID, or "" if unknown
	Hash    string `json:"hash"`              // hash of its ID
	Begins  string `json:"begins,omitempty"`  // its first message, truncated
	Client  string `json:"client,omitempty"`  // of its first message
	Model   string `json:"model,omitempty"`   // likewise
	In      string `json:"in"`                // name of its memory
	Group   string `json:"group"`             // group of its memory
	Span
}

const maxBegins = 80 // displayed characters of a first message

// CheckLimit returns an error unless n is between 1 and MaxListed.
func CheckLimit(n int) error {
	if n < 1 || n > MaxListed {
		return invalid(fmt.Sprintf("limit must be 1 to %d", MaxListed))
	}
	return nil
}

// Catalog lists a person's newest memories and conversations.
func (sv *Service) Catalog(ctx context.Context, in *ListRequest) (Catalog, error) {
	c := Catalog{Memories: []Kept{}, Conversations: []Conversation{}}
	if err := CheckLimit(in.Limit); err != nil {
		return c, err
	}
	person := in.Whose()
	groups, _, err := sv.theirs(ctx, in.Selector)
	if err != nil {
		return c, err
	}
	// A personal statement in a project is in both groups. The project has its conversation.
	slices.SortStableFunc(groups, func(a, b ledger.Owned) int { return cmp.Compare(rank(a.Scope), rank(b.Scope)) })
	l := catalog{conversations: make(map[string]*counted)}
	if len(groups) > 1 {
		l.seen = make(map[graphiti.ID]struct{})
	}
	for _, o := range groups {
		c.Groups = append(c.Groups, o.Group)
		k := Kept{Name: NameOf(o, person), Scope: o.Scope, Key: o.Key, Group: o.Group, Shared: o.Shared}
		err := sv.headings(ctx, o.Group, func(r *graphiti.Row) {
			k.count(r.Said)
			l.add(&k, r)
		})
		if err != nil {
			return c, err
		}
		if k.counted(); k.Messages > 0 && o.Scope != string(graphiti.ScopeSession) {
			c.Memories = append(c.Memories, k)
		}
	}
	c.AllMemories = len(c.Memories)
	slices.SortStableFunc(c.Memories, func(a, b Kept) int { return cmp.Compare(b.Last, a.Last) })
	c.Memories = c.Memories[:min(in.Limit, len(c.Memories))]
	until, err := momentIn(in.Before)
	if err != nil {
		return c, err
	}
	c.Conversations, err = sv.newest(ctx, &l, until, in.Limit)
	c.AllConversations = len(l.conversations)
	return c, err
}

// theirs is owned for a person, or one group by its ID. System actors, for example, have no other
// selector.
func (sv *Service) theirs(ctx context.Context, s Selector) (groups []ledger.Owned, owner string, err error) {
	switch {
	case s != (Selector{User: s.User, Credential: s.Credential, Group: s.Group}):
		return nil, "", invalid("only a person's memories can be listed: name only user or credential, or one group")
	case s == (Selector{}) && sv.o.Multi:
		return nil, "", invalid("name a person with user or credential")
	}
	return sv.owned(ctx, s)
}

// rank orders scopes: a conversation belongs to the first of its groups.
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

// NameOf returns the display name of a group; person is the display name of its owner.
func NameOf(o ledger.Owned, person string) string {
	switch graphiti.Scope(o.Scope) {
	case graphiti.ScopeWorkspace:
		return cmp.Or(graphiti.ShortWorkspace(o.Key), o.Group)
	case graphiti.ScopeUser:
		return person
	case graphiti.ScopeSession:
		return cmp.Or(strings.TrimPrefix(o.Key, "session:"), o.Group)
	}
	return o.Group
}

// catalog counts the messages of each conversation.
type catalog struct {
	conversations map[string]*counted      // by the hash of their IDs
	seen          map[graphiti.ID]struct{} // their messages, which may be in several groups; nil for one group
}

type counted struct {
	Conversation
	begun time.Time   // time of its first message by the person
	first graphiti.ID // that message
	from  string      // group of that message
}

// add counts a message of a group in its conversation.
func (l *catalog) add(k *Kept, r *graphiti.Row) {
	hash, session := r.Session, ""
	if k.Scope == string(graphiti.ScopeSession) && k.Key != "" {
		hash, session = graphiti.SessionHash(k.Key), NameOf(ledger.Owned{Group: k.Group, Scope: k.Scope, Key: k.Key}, "")
	} else if r.Role == graphiti.RoleSystem {
		return // a promoted text
	}
	if hash == "" {
		return
	}
	if l.seen != nil && r.ID != (graphiti.ID{}) {
		if _, again := l.seen[r.ID]; again {
			return
		}
		l.seen[r.ID] = struct{}{}
	}
	t := l.conversations[hash]
	if t == nil {
		t = &counted{Conversation: Conversation{Session: session, Hash: hash, In: k.Name, Group: k.Group}}
		l.conversations[hash] = t
	}
	t.count(r.Said)
	if r.Role == graphiti.RoleUser && (t.from == "" || r.Said.Before(t.begun)) {
		t.Begins, t.begun, t.first, t.from = beginning(r.Text), r.Said, r.ID, k.Group
	}
}

// newest returns the conversations with the latest messages before a time, and their first messages.
func (sv *Service) newest(ctx context.Context, l *catalog, until time.Time, limit int) ([]Conversation, error) {
	maps.DeleteFunc(l.conversations, func(_ string, t *counted) bool { return !until.IsZero() && !t.last.Before(until) })
	all := slices.SortedFunc(maps.Values(l.conversations), func(a, b *counted) int { return cmp.Or(b.last.Compare(a.last), cmp.Compare(a.Hash, b.Hash)) })
	all = all[:min(limit, len(all))]
	if err := sv.readBeginnings(ctx, all); err != nil {
		return []Conversation{}, err
	}
	list := make([]Conversation, len(all))
	for i, t := range all {
		t.counted()
		list[i] = t.Conversation
	}
	return list, nil
}

// readBeginnings reads the first messages of conversations without a text.
func (sv *Service) readBeginnings(ctx context.Context, all []*counted) error {
	first := make(map[string]map[graphiti.ID]*counted) // by group
	for _, t := range all {
		if t.from == "" || t.Begins != "" || t.first == (graphiti.ID{}) {
			continue
		}
		if first[t.from] == nil {
			first[t.from] = make(map[graphiti.ID]*counted)
		}
		first[t.from][t.first] = t
	}
	for group, of := range first {
		for r, err := range sv.o.Memory.Rows(ctx, group, graphiti.Filter{IDs: slices.Collect(maps.Keys(of)), Text: true}) {
			if err != nil {
				return withRemedy(err)
			}
			of[r.ID].Begins, of[r.ID].Client, of[r.ID].Model = beginning(r.Text), gjson.Get(r.Source, "client").Str, gjson.Get(r.Source, "model").Str
		}
	}
	return nil
}

// beginning returns the start of a text in one line.
func beginning(text string) string { return graphiti.OneLine(text, maxBegins) }
