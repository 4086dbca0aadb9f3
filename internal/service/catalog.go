package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
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
	l := catalog{conversations: make(map[string]*counted), seen: make(map[uint64]struct{}), seed: maphash.MakeSeed()}
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
	c.Conversations = l.list()
	c.AllMemories, c.AllConversations = len(c.Memories), len(c.Conversations)
	slices.SortStableFunc(c.Memories, func(a, b Kept) int { return cmp.Compare(b.Last, a.Last) })
	c.Memories = c.Memories[:min(limit, len(c.Memories))]
	c.Conversations = c.Conversations[:min(limit, len(c.Conversations))]
	return c, nil
}

// notAllGroups says which groups are known of a memory that does not list its own.
const notAllGroups = "Graphiti does not say which groups it holds: listed are the person's own and those that this proxy wrote to"

// theirs finds all groups that are a person's, of whom a selector names nothing else.
func (sv *Service) theirs(ctx context.Context, s Selector) ([]ledger.Owned, error) {
	switch {
	case s != (Selector{User: s.User, Credential: s.Credential}):
		return nil, invalid("only a person's memories can be listed: name them with user or credential, and nothing else")
	case s == (Selector{}) && sv.o.Multi:
		return nil, invalid("say whose memories are meant: user or credential")
	case s == (Selector{}):
		s.User = sv.o.Owner
	}
	return sv.groups(ctx, s)
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

var errForgetting = errors.New("it is being forgotten")

// countInto counts what a group holds, what waits for it included.
func (sv *Service) countInto(ctx context.Context, l *catalog, k *Kept) error {
	if sv.o.State.Generations.Blocks(k.Group) {
		return errForgetting
	}
	waiting := make(map[string]bool)
	err := sv.o.Pipeline.Waiting(ctx, ledger.Part{Group: k.Group}, func(g graphiti.Message) error {
		waiting[g.Name] = true
		l.add(k, message{g.Name, string(g.RoleType), g.Content, g.SourceDescription, g.Timestamp})
		return nil
	})
	if err != nil {
		return err
	}
	listed := false
	err = sv.o.Memory.Export(ctx, k.Group, func(e graphiti.Episode) error {
		listed = true
		for _, said := range e.Sides() {
			if !waiting[said.Name] { // else it was handed over, and is not known to have arrived
				l.add(k, message{said.Name, string(said.Role), said.Text, e.SourceDescription, e.ValidAt})
			}
		}
		return nil
	})
	if err != nil {
		return withRemedy(err)
	}
	if listed {
		return nil
	}
	return sv.emptyOrUnlisted(ctx, k.Group)
}

// message is one that is counted.
type message struct {
	name, role, text, source string
	at                       time.Time
}

// catalog counts messages by the conversation that they are in.
type catalog struct {
	conversations map[string]*counted // by what stands for their ids
	seen          map[uint64]struct{} // the names of their messages: one may be in several groups
	seed          maphash.Seed
}

type counted struct {
	Conversation
	begun string // when that was said which it begins with
}

// add counts a message of a group, and counts it in its conversation.
func (l *catalog) add(k *Kept, m message) {
	at := stampOf(m.at)
	k.count(at)
	hash, session := ledger.SessionOf(m.source), ""
	if k.Scope == string(graphiti.ScopeSession) && k.Key != "" {
		hash, session = graphiti.SessionHash(k.Key), k.Name
	} else if m.role == string(graphiti.RoleSystem) {
		return // a text that was promoted, and not said
	}
	if hash == "" {
		return
	}
	name := maphash.String(l.seed, m.name)
	if _, again := l.seen[name]; again {
		return
	}
	l.seen[name] = struct{}{}
	t := l.conversations[hash]
	if t == nil {
		t = &counted{Conversation: Conversation{Session: session, Hash: hash, In: k.Name, Group: k.Group}}
		l.conversations[hash] = t
	}
	t.count(at)
	if m.role == string(graphiti.RoleUser) && (t.begun == "" || at < t.begun) {
		t.Begins, t.begun = beginning(m.text), at
	}
}

func (s *Span) count(at string) {
	s.Messages++
	if at == "" {
		return
	}
	if s.First == "" || at < s.First {
		s.First = at
	}
	s.Last = max(s.Last, at)
}

// list returns the conversations, the newest first.
func (l *catalog) list() []Conversation {
	list := make([]Conversation, 0, len(l.conversations))
	for _, t := range l.conversations {
		list = append(list, t.Conversation)
	}
	slices.SortFunc(list, func(a, b Conversation) int { return cmp.Or(cmp.Compare(b.Last, a.Last), cmp.Compare(a.Hash, b.Hash)) })
	return list
}

// beginning returns the start of a text as one line, cut.
func beginning(text string) string {
	runes := []rune(strings.Join(strings.Fields(strings.ToValidUTF8(text[:min(len(text), 16*maxBegins)], "")), " "))
	if len(runes) > maxBegins {
		return string(runes[:maxBegins-1]) + "…"
	}
	return string(runes)
}
