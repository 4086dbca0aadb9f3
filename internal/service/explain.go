package service

import (
	"cmp"
	"context"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// Explain returns a conversation, and what memory did for each of its turns.
func (sv *Service) Explain(ctx context.Context, in *ConversationRequest) (x Explained, err error) {
	x.Memories, x.Turns = []Kept{}, []Turn{}
	if err := in.checkConversation(); err != nil {
		return x, err
	}
	s, id := in.Selector, in.Message
	s.Message = ""
	groups, err := sv.withOwners(ctx, s)
	if err != nil {
		return x, err
	}
	owner := ""
	if in.own {
		if _, owner, err = sv.asked(s); err != nil || owner == "" {
			return x, cmp.Or(err, error(InvalidError{errNobody}))
		}
		groups = slices.DeleteFunc(groups, func(o ledger.Owned) bool { return o.Shared })
	}
	// As for a list of conversations: what is also in the person's own memory is the
	// project's.
	slices.SortStableFunc(groups, func(a, b ledger.Owned) int { return cmp.Compare(rank(a.Scope), rank(b.Scope)) })
	ctx, cancel := context.WithTimeout(ctx, catalogTimeout)
	defer cancel()
	x.Hash = in.Hash
	if id != "" {
		if x.Hash, err = sv.conversationOf(ctx, groups, id); err != nil {
			return x, err
		}
	}
	g := gathering{sv: sv, hash: x.Hash, message: id, seen: make(map[string]bool)}
	for _, o := range groups {
		x.Groups = append(x.Groups, o.Group)
		k := Kept{Name: nameOf(o, s.Whose()), Scope: o.Scope, Key: o.Key, Group: o.Group, Shared: o.Shared}
		if err := g.from(ctx, o, &k); err != nil {
			g.failed = cmp.Or(g.failed, err)
			k.Uncounted = err.Error()
		}
		if k.Messages > 0 || k.Uncounted != "" {
			x.Memories = append(x.Memories, k)
		}
	}
	switch {
	case len(g.messages) == 0 && g.failed != nil:
		return x, g.failed
	case len(g.messages) == 0:
		return x, invalid(fmt.Sprintf("hash: the person has no messages in a conversation %.60q; graphiti-proxy memory list lists conversations", x.Hash))
	}
	g.describe(&x)
	turns := g.turns()
	x.AllTurns = len(turns)
	end := max(0, len(turns)-in.Skip)
	if at := indexOf(turns, id); at >= 0 && in.Skip == 0 && at < end-in.Limit {
		end = min(end, at+in.Limit/2+1)
	}
	x.Turns = append(x.Turns, turns[max(0, end-in.Limit):end]...)
	for i := range x.Turns {
		if err := sv.markRecords(ctx, x.Groups, x.Turns[i].Messages); err != nil {
			return x, err
		}
	}
	return x, sv.explain(ctx, groups, owner, &x)
}

func (in *ConversationRequest) checkConversation() error {
	switch {
	case (in.Hash == "") == (in.Message == ""):
		return invalid("hash: name the conversation by its hash, or by the id of one of its messages (message)")
	case in.Session != "" || in.Card != "":
		return invalid("hash: already selects the conversation; remove session and card")
	case in.Skip < 0:
		return invalid("skip must be 0 or more")
	}
	return CheckLimit(in.Limit)
}

// indexOf returns the index of the turn that has a message with an id; -1: none has.
func indexOf(turns []Turn, id string) int {
	return slices.IndexFunc(turns, func(t Turn) bool {
		return slices.ContainsFunc(t.Messages, func(r Record) bool { return r.ID == id })
	})
}

// conversationOf returns the hash of the conversation that a message was said in; empty
// for one that was said in none, such as a text that somebody promoted.
func (sv *Service) conversationOf(ctx context.Context, groups []ledger.Owned, id string) (hash string, err error) {
	found := false
	for _, o := range groups {
		if sv.o.State.Generations.Blocks(o.Group) {
			continue
		}
		look := func(name, source string) {
			if graphiti.MessageID(name) == id {
				found = true
				hash = cmp.Or(hash, sessionIn(&o, source))
			}
		}
		err := sv.o.Memory.Seek(ctx, o.Group, graphiti.Sought{Message: id}, func(e graphiti.Episode) error {
			for _, side := range e.Sides() {
				look(side.Name, e.SourceDescription)
			}
			return nil
		})
		if err == nil {
			err = sv.o.Pipeline.Waiting(ctx, ledger.Part{Group: o.Group}, func(m graphiti.Message) error {
				look(m.Name, m.SourceDescription)
				return nil
			})
		}
		if err != nil {
			return "", withRemedy(err)
		}
		if hash != "" {
			return hash, nil
		}
	}
	if !found {
		return "", notTheirs(id)
	}
	return "", nil
}

// sessionIn returns the hash of the conversation that a message of a group was said in:
// all of a conversation's own group was.
func sessionIn(o *ledger.Owned, source string) string {
	if o.Scope == string(graphiti.ScopeSession) && o.Key != "" {
		return graphiti.SessionHash(o.Key)
	}
	return ledger.SessionOf(source)
}

// gathering collects the messages of one conversation, or one message that is of none.
type gathering struct {
	sv       *Service
	hash     string // empty: the message alone
	message  string // its id
	messages []gathered
	seen     map[string]bool // by name: what a person says of themselves in a project is in their own memory too
	failed   error           // the first error
}

type gathered struct {
	Record
	at   time.Time
	kept *Kept
}

// from collects what a group holds of the conversation, what waits for it included.
func (g *gathering) from(ctx context.Context, o ledger.Owned, k *Kept) error {
	if g.sv.o.State.Generations.Blocks(o.Group) {
		return errForgetting
	}
	here := make(map[string]bool)
	var all spanned
	defer func() { k.Span = all.span() }()
	add := func(r Record, at time.Time) {
		if sessionIn(&o, r.Source) != g.hash || here[r.Name] && r.Name != "" || g.hash == "" && graphiti.MessageID(r.Name) != g.message {
			return
		}
		here[r.Name] = true
		all.count(at)
		if g.seen[r.Name] && r.Name != "" {
			return
		}
		g.seen[r.Name] = true
		r.Group, r.Scope, r.ID, r.Time = o.Group, o.Scope, graphiti.MessageID(r.Name), dateOf(at)
		if session, ok := strings.CutPrefix(o.Key, "session:"); ok && o.Scope == string(graphiti.ScopeSession) {
			r.Session = session
		}
		g.messages = append(g.messages, gathered{r, at, k})
	}
	episode := func(e graphiti.Episode) error {
		for _, side := range e.Sides() {
			add(Record{Name: side.Name, Where: "memory", Role: string(side.Role), Speaker: side.Speaker, Text: side.Text, Source: e.SourceDescription}, e.ValidAt)
		}
		return nil
	}
	var err error
	switch of := sessionIn(&o, ""); {
	case g.hash == "":
		err = g.sv.o.Memory.Seek(ctx, o.Group, graphiti.Sought{Message: g.message}, episode)
	case of == "":
		err = g.sv.o.Memory.Seek(ctx, o.Group, graphiti.Sought{Session: g.hash}, episode)
	case of == g.hash:
		err = g.sv.o.Memory.Export(ctx, o.Group, episode)
	default: // of another conversation alone
		return nil
	}
	if err != nil {
		err = withRemedy(err)
	}
	waiting := g.sv.o.Pipeline.Waiting(ctx, ledger.Part{Group: o.Group}, func(m graphiti.Message) error {
		add(Record{Name: m.Name, Where: "queue", Role: string(m.RoleType), Speaker: m.Role, Text: m.Content, Source: m.SourceDescription}, m.Timestamp)
		return nil
	})
	return cmp.Or(err, waiting)
}

// describe says what conversation it is.
func (g *gathering) describe(x *Explained) {
	slices.SortStableFunc(g.messages, func(a, b gathered) int { return a.at.Compare(b.at) })
	var all spanned
	for _, m := range g.messages {
		all.count(m.at)
		if x.Begins == "" && m.Role == string(graphiti.RoleUser) {
			x.Begins = beginning(m.Text)
		}
		x.Session = cmp.Or(x.Session, m.Session)
	}
	x.Span = all.span()
	first := slices.MinFunc(g.messages, func(a, b gathered) int { return cmp.Compare(rank(a.Scope), rank(b.Scope)) })
	x.In, x.Group = first.kept.Name, first.kept.Group
}

// turns makes turns of the messages, oldest first. A message that is not a side of a turn
// is one by itself, with the id of the message.
func (g *gathering) turns() (turns []Turn) {
	at := make(map[string]int)
	for _, m := range g.messages {
		id, ours := graphiti.TurnOf(m.Name)
		if !ours {
			id = m.ID
		}
		i, known := at[id]
		if !known || id == "" {
			i = len(turns)
			at[id] = i
			turns = append(turns, Turn{ID: id, Time: m.Time})
		}
		turns[i].Messages = append(turns[i].Messages, m.Record)
	}
	return turns
}

// keysOf are the keys of the decisions about turns, and of each which turn's it is.
func keysOf(turns []Turn) (keys [][16]byte, of []int) {
	for i := range turns {
		raw, err := hex.DecodeString(turns[i].ID)
		if err == nil && len(raw) == len([16]byte{}) {
			keys, of = append(keys, [16]byte(raw)), append(of, i)
		}
	}
	return keys, of
}
