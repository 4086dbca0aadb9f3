package service

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/inject"
)

// The kinds of pieces, besides KindFact.
const (
	KindMessage = "message"
	KindCard    = "card"
	KindNote    = "note"
)

// Notes on all turns together.
const (
	noteEmptied = "Some blocks were emptied, because their memory or conversation was forgotten. They are not sent again. The model's answers to them stay in the client's conversation."
	noteGone    = "A piece without a text has been forgotten or corrected. Its blocks stay unchanged in this conversation."
	noteOthers  = "Results from memories that you share with others are not shown."
	noteDamaged = "The search results of some turns are no longer readable."
)

// explain adds decisions to the turns. groups are the conversation's groups. A non-empty owner
// restricts the decisions to that owner's.
func (sv *Service) explain(ctx context.Context, groups []ledger.Owned, owner string, x *Explained) error {
	keys, of := keysOf(x.Turns)
	decided, err := sv.o.State.Decisions.WithPieces(ctx, keys)
	if err != nil {
		return err
	}
	l := lookup{sv: sv, groups: groups, owner: owner, wanted: make(map[string]*wanted)}
	for i, d := range decided {
		if d != nil {
			x.Turns[of[i]].Decision = l.decision(d)
		}
	}
	for _, group := range slices.Sorted(maps.Keys(l.wanted)) {
		if err := l.find(ctx, l.wanted[group]); err != nil {
			l.say(fmt.Sprintf("Not read: %s: %v.", group, err))
		}
	}
	x.Note = strings.TrimSpace(x.Note + " " + strings.Join(l.notes, " "))
	return nil
}

// lookup looks up the current texts of pieces.
type lookup struct {
	sv     *Service
	groups []ledger.Owned
	owner  string
	wanted map[string]*wanted // by group
	notes  []string
}

// wanted holds the pieces of one group.
type wanted struct {
	in       ledger.Owned
	messages map[string][]*Piece // by name
	facts    map[string][]*Piece // by UUID
	sources  map[string][]*Piece // facts by the UUID of their latest message
}

func (l *lookup) say(note string) {
	if !slices.Contains(l.notes, note) {
		l.notes = append(l.notes, note)
	}
}

// decision returns a decision. Its pieces are looked up later. It returns nil for a decision of
// another owner: callers may import a message under the name of another person's.
func (l *lookup) decision(d *inject.Decision) *Decision {
	c, err := d.Pieces.Read()
	if err != nil {
		l.say(noteDamaged)
	}
	if l.owner != "" && d.Block+string(d.Pieces) != "" && c.Owner != inject.OwnerID(l.owner) {
		return nil
	}
	out := &Decision{Block: d.Block, Facts: d.Facts, Gone: d.Block == "" && d.Facts > 0, Why: why(d, &c)}
	if d.Block == "" && !out.Gone {
		out.Reason = d.Reason
	}
	if out.Gone {
		l.say(noteEmptied)
	}
	lines := inject.BlockLines(d.Block)
	rest := c.Pieces
	var all []*inject.Piece
	for n := 1; n <= min(c.Opening, len(lines)); n++ {
		if len(rest) > 0 && rest[0].Line == n {
			all, rest = append(all, &rest[0]), rest[1:]
		} else {
			all = append(all, &inject.Piece{Verdict: inject.Shown, Line: n}) // a session note
		}
	}
	for i := range rest {
		all = append(all, &rest[i])
	}
	out.Pieces = make([]Piece, len(all))
	for i, p := range all {
		out.Pieces[i] = pieceOf(p, lines)
		if p.Card == "" && p.Line > 0 && p.Line <= c.Opening {
			out.Pieces[i].Kind = KindNote
			out.Pieces[i].Text = out.Pieces[i].Line
			continue
		}
		l.want(&out.Pieces[i], p)
	}
	return out
}

func pieceOf(p *inject.Piece, lines []string) Piece {
	out := Piece{Verdict: string(p.Verdict), Kind: KindFact, Scope: string(p.Scope), Group: p.Group, UUID: p.UUID}
	if p.Line > 0 && p.Line <= len(lines) {
		out.Line = lines[p.Line-1]
	}
	if p.Weighed {
		out.Strength = &p.Strength
	}
	switch {
	case p.Card != "":
		out.Kind = KindCard
	case p.Episode != "":
		out.Kind, out.ID = KindMessage, graphiti.MessageID(p.Episode)
		out.Turn, _ = graphiti.TurnOf(p.Episode)
	}
	return out
}

func (l *lookup) want(to *Piece, p *inject.Piece) {
	if p.Group == "" || to.Kind == KindCard { // a card has only its line
		return
	}
	w := l.wanted[p.Group]
	if w == nil {
		w = &wanted{in: ledger.Owned{Group: p.Group, Scope: string(p.Scope)}, messages: make(map[string][]*Piece), facts: make(map[string][]*Piece), sources: make(map[string][]*Piece)}
		i := slices.IndexFunc(l.groups, func(o ledger.Owned) bool { return o.Group == p.Group })
		if i < 0 && l.owner != "" { // recall may read a group that its owner may not list
			l.say(noteOthers)
			return
		}
		if i >= 0 {
			w.in = l.groups[i]
		}
		l.wanted[p.Group] = w
	}
	switch {
	case p.Episode != "":
		w.messages[p.Episode] = append(w.messages[p.Episode], to)
	case p.UUID != "":
		w.facts[p.UUID] = append(w.facts[p.UUID], to)
	}
}

func (l *lookup) find(ctx context.Context, w *wanted) error {
	if l.sv.o.State.Generations.Blocks(w.in.Group) {
		return errForgetting
	}
	facts, err := l.sv.o.Memory.Facts(ctx, w.in.Group, slices.Sorted(maps.Keys(w.facts)))
	if err != nil {
		return withRemedy(err)
	}
	for i := range facts {
		f := &facts[i]
		for _, p := range w.facts[f.UUID] {
			p.Text, p.Time = f.Text, dateOf(f.ValidAt)
			if n := len(f.Episodes); n > 0 {
				w.sources[f.Episodes[n-1]] = append(w.sources[f.Episodes[n-1]], p)
			}
		}
	}
	names, sources := slices.Collect(maps.Keys(w.messages)), slices.Collect(maps.Keys(w.sources))
	if len(names)+len(sources) > 0 {
		for r, err := range l.sv.rows(ctx, ledger.Part{Group: w.in.Group}, graphiti.Filter{Names: names, Keys: sources, Text: true}) {
			if err != nil {
				return err
			}
			w.found(&r)
		}
	}
	l.sayGone(w.messages)
	l.sayGone(w.facts)
	return nil
}

func (l *lookup) sayGone(pieces map[string][]*Piece) {
	for _, list := range pieces {
		if list[0].Text == "" {
			l.say(noteGone)
		}
	}
}

// found sets the text of the pieces of a message, and the source of facts.
func (w *wanted) found(r *graphiti.Row) {
	for _, p := range w.messages[r.Name] {
		p.Text, p.Role, p.Time, p.Conversation = r.Plain(), string(r.Role), dateOf(r.Said), sessionIn(&w.in, r)
	}
	for _, p := range w.sources[r.Key] {
		if p.ID == "" { // an entry's second row is the answer
			p.Conversation, p.ID = sessionIn(&w.in, r), r.ID.String()
			p.Turn, _ = graphiti.TurnOf(r.Name)
		}
	}
}
