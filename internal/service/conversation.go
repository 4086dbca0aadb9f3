package service

import (
	"cmp"
	"context"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/words"
)

// ConversationRequest selects a conversation by its hash, or by one of its messages
// (Selector.Message). Without Skip, the answer includes the turn of that message. A message
// outside conversations, such as a promoted text, is returned alone.
type ConversationRequest struct {
	Selector
	Hash  string `json:"hash,omitempty"`
	Skip  int    `json:"skip,omitempty"`  // number of the newest turns to omit
	Limit int    `json:"limit,omitempty"` // maximum number of turns
}

// Explained is a conversation with the decision of each turn.
type Explained struct {
	Conversation
	Memories []Kept   `json:"memories"` // memories of its messages
	Turns    []Turn   `json:"turns"`    // oldest first
	AllTurns int      `json:"all_turns"`
	Also     int      `json:"also,omitempty"` // other conversations with a copy of the selected message
	Note     string   `json:"note,omitempty"`
	Groups   []string `json:"-"`
}

// Turn is one turn of a conversation.
type Turn struct {
	ID       string    `json:"id"`
	Time     string    `json:"time,omitempty"`
	Messages []Record  `json:"messages"`           // in the order of time
	Decision *Decision `json:"decision,omitempty"` // nil if expired
	Work     []string  `json:"work,omitempty"`     // lines about the agent's tool calls
}

// Decision is the decision about the memory of a turn.
type Decision struct {
	Block  string  `json:"block,omitempty"` // the block before the person's message
	Facts  int     `json:"facts"`
	Gone   bool    `json:"gone,omitempty"`   // a forget emptied the block
	Reason string  `json:"reason,omitempty"` // reason for no block, as in the X-Graphiti-Memory header
	Why    string  `json:"why,omitempty"`    // the reason in a sentence
	Pieces []Piece `json:"pieces,omitempty"` // shown pieces in the order of the block, then the best of the others
}

// Piece is a search result for a turn, or an entry of the card.
type Piece struct {
	Verdict  string   `json:"verdict"`        // an inject.Verdict
	Line     string   `json:"line,omitempty"` // line of the block, which pieces may share, or "" if it was not shown
	Kind     string   `json:"kind"`           // message, fact, card, or note for session notes, which have no ID
	Scope    string   `json:"scope,omitempty"`
	Group    string   `json:"group,omitempty"`
	Strength *float64 `json:"strength,omitempty"` // nil if the memory does not measure it

	// The current message, or Graphiti's fact. An empty text means that it is gone.
	ID           string `json:"id,omitempty"` // message ID, for forget and correct
	UUID         string `json:"uuid,omitempty"`
	Text         string `json:"text,omitempty"`
	Role         string `json:"role,omitempty"`
	Time         string `json:"time,omitempty"`
	Conversation string `json:"conversation,omitempty"` // hash of its conversation
	Turn         string `json:"turn,omitempty"`         // its turn
}

// TurnsOf returns a conversation with the decision of each turn.
var TurnsOf = Operation[ConversationRequest, Explained]{
	Spec:    Spec{Name: "memory/conversation", About: "One conversation: its turns, their blocks, and the rejected results with reasons"},
	Default: ConversationRequest{Limit: 50},
	Run:     withMemory((*Service).Explain),
	Audit: func(in *ConversationRequest, out *Explained) Entry {
		return in.audit("show a conversation", out.Groups)
	},
	Own: func(ctx context.Context, h *Host, in *ConversationRequest, own Selector) error {
		in.unshared = true
		return h.Memory.narrow(ctx, &in.Selector, own)
	},
}

// Explain returns a conversation with the decision of each turn.
func (sv *Service) Explain(ctx context.Context, in *ConversationRequest) (x Explained, err error) {
	x.Memories, x.Turns = []Kept{}, []Turn{}
	if err := in.checkConversation(); err != nil {
		return x, err
	}
	s, ids := in.Selector, strings.Fields(in.Message)
	s.Message = ""
	groups, owner, err := sv.owned(ctx, s)
	if err != nil {
		return x, err
	}
	// A personal statement in a project is in both groups. The project has its conversation.
	slices.SortStableFunc(groups, func(a, b ledger.Owned) int { return cmp.Compare(rank(a.Scope), rank(b.Scope)) })
	x.Hash = in.Hash
	id := ""
	if len(ids) > 0 {
		id = ids[0]
		var found []held
		for _, o := range groups {
			some, err := sv.messagesIn(ctx, o, ids)
			if err != nil {
				return x, err
			}
			for i := range some { // a promoted text has no hash
				if some[i].row.ID.String() == id {
					x.Hash = cmp.Or(x.Hash, sessionIn(&o, &some[i].row))
				}
			}
			found = append(found, some...)
		}
		if len(found) == 0 {
			return x, notTheirs(id)
		}
		if _, x.Also, err = sv.withCopies(ctx, found, graphiti.Filter{Words: words.Of(found[0].row.Text, maxQuery), Newest: true, Text: true}); err != nil {
			return x, err
		}
	}
	for _, o := range groups {
		x.Groups = append(x.Groups, o.Group)
	}
	g := gathering{sv: sv, hash: x.Hash, message: id, seen: make(map[string]bool)}
	if g.ended, err = sv.o.State.Ended.In(ctx, x.Groups...); err != nil {
		return x, err
	}
	for _, o := range groups {
		k := Kept{Name: NameOf(o, s.Whose()), Scope: o.Scope, Key: o.Key, Group: o.Group, Shared: o.Shared}
		if err := g.from(ctx, o, &k); err != nil {
			return x, err
		}
		if k.counted(); k.Messages > 0 {
			x.Memories = append(x.Memories, k)
		}
	}
	if len(g.messages) == 0 {
		return x, invalid(fmt.Sprintf("hash: the person has no messages in a conversation %.60q; graphiti-proxy memory list lists conversations", x.Hash))
	}
	g.replaceMoved()
	g.describe(&x)
	turns := g.turns()
	x.AllTurns = len(turns)
	end := max(0, len(turns)-in.Skip)
	if at := indexOf(turns, id); at >= 0 && in.Skip == 0 && at < end-in.Limit {
		end = min(end, at+in.Limit/2+1)
	}
	x.Turns = append(x.Turns, turns[max(0, end-in.Limit):end]...)
	if !in.unshared {
		owner = ""
	}
	return x, sv.explain(ctx, groups, owner, &x)
}

func (in *ConversationRequest) checkConversation() error {
	switch {
	case (in.Hash == "") == (len(strings.Fields(in.Message)) == 0):
		return invalid("hash: name the conversation by its hash, or by the id of one of its messages (message)")
	case in.Session != "":
		return invalid("hash: already selects the conversation; remove session")
	case in.Skip < 0:
		return invalid("skip must be 0 or more")
	}
	return CheckLimit(in.Limit)
}

// indexOf returns the index of the turn with a message ID, or -1.
func indexOf(turns []Turn, id string) int {
	return slices.IndexFunc(turns, func(t Turn) bool {
		return slices.ContainsFunc(t.Messages, func(r Record) bool { return r.ID == id })
	})
}

// gathering collects the messages of one conversation, or a single message.
type gathering struct {
	sv       *Service
	hash     string // "" for a single message
	message  string // ID of the single message
	messages []gathered
	seen     map[string]bool   // by name; a personal statement in a project is in both groups
	ended    map[string]string // times of ends, by name
}

type gathered struct {
	Record
	at   time.Time
	kept *Kept
	turn string // its ID
}

// from collects the messages of a group.
func (g *gathering) from(ctx context.Context, o ledger.Owned, k *Kept) error {
	if g.sv.o.State.Generations.Blocks(o.Group) {
		return nil
	}
	here := make(map[string]bool)
	f := graphiti.Filter{Text: true}
	switch of := sessionIn(&o, &graphiti.Row{}); {
	case g.hash == "":
		id, _ := graphiti.ParseID(g.message) // message has parsed it
		f.IDs = []graphiti.ID{id}
	case of == "":
		f.Session = g.hash
	case of != g.hash: // a group of another conversation
		return nil
	}
	for r, err := range g.sv.rows(ctx, ledger.Part{Group: o.Group}, f) {
		if err != nil {
			return err
		}
		if sessionIn(&o, &r) != g.hash || here[r.Name] && r.Name != "" {
			continue
		}
		here[r.Name] = true
		k.count(r.Said)
		if g.seen[r.Name] && r.Name != "" {
			continue
		}
		g.seen[r.Name] = true
		of := recordOf(&r)
		of.Group, of.Scope, of.ID, of.Speaker, of.Time, of.Ended = o.Group, o.Scope, r.ID.String(), r.Speaker, dateOf(r.Said), g.ended[r.Name]
		if session, ok := strings.CutPrefix(o.Key, "session:"); ok && o.Scope == string(graphiti.ScopeSession) {
			of.Session = session
		}
		turn, ours := graphiti.TurnOf(r.Name)
		if !ours {
			turn = of.ID
		}
		g.messages = append(g.messages, gathered{of, r.Said, k, turn})
	}
	return nil
}

// replaceMoved puts moved messages in the places of their ended originals.
func (g *gathering) replaceMoved() {
	is := func(m *gathered) string { return m.Role + m.at.String() + m.Text }
	valid := make(map[string]int)
	for i := range g.messages {
		if m := &g.messages[i]; m.Ended == "" {
			valid[is(m)] = i
		}
	}
	for i := range g.messages {
		m := &g.messages[i]
		if at, ok := valid[is(m)]; ok && m.Ended != "" && m.Group != g.messages[at].Group {
			delete(valid, is(m))
			to := &g.messages[at]
			m.Record, m.kept, to.kept = to.Record, to.kept, nil
		}
	}
	g.messages = slices.DeleteFunc(g.messages, func(m gathered) bool { return m.kept == nil })
}

func (g *gathering) describe(x *Explained) {
	slices.SortStableFunc(g.messages, func(a, b gathered) int { return a.at.Compare(b.at) })
	for _, m := range g.messages {
		x.count(m.at)
		if x.Begins == "" && m.Role == string(graphiti.RoleUser) {
			x.Begins, x.Client, x.Model = beginning(m.Text), gjson.Get(m.Source, "client").Str, gjson.Get(m.Source, "model").Str
		}
		x.Session = cmp.Or(x.Session, m.Session)
	}
	x.counted()
	first := slices.MinFunc(g.messages, func(a, b gathered) int { return cmp.Compare(rank(a.Scope), rank(b.Scope)) })
	x.In, x.Group = first.kept.Name, first.kept.Group
}

// turns groups the messages into turns, oldest first. A message outside of turns is a turn with
// the ID of the message.
func (g *gathering) turns() (turns []Turn) {
	at := make(map[string]int)
	for _, m := range g.messages {
		i, known := at[m.turn]
		if !known || m.turn == "" {
			i = len(turns)
			at[m.turn] = i
			turns = append(turns, Turn{ID: m.turn, Time: m.Time})
		}
		if c, ok := graphiti.ParseCurated(m.Text); ok && graphiti.IsWork(m.Name) {
			turns[i].Work = strings.Split(c.Text, graphiti.BetweenWork)
			continue
		}
		turns[i].Messages = append(turns[i].Messages, m.Record)
	}
	return turns
}

// keysOf returns the keys of the turns' decisions, and the index of the turn for each key.
func keysOf(turns []Turn) (keys [][16]byte, of []int) {
	for i := range turns {
		raw, err := hex.DecodeString(turns[i].ID)
		if err == nil && len(raw) == len([16]byte{}) {
			keys, of = append(keys, [16]byte(raw)), append(of, i)
		}
	}
	return keys, of
}
