package standing

import (
	"context"
	"slices"
	"time"

	"github.com/tidwall/gjson"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/card"
)

// Ended are statements of a group that a message has ended.
type Ended struct {
	Group string
	Names []string // of messages, and UUIDs of facts
	Lines []string // IDs
}

// End ends messages of a group, and their distilled facts.
func (k *Keeper) End(ctx context.Context, group string, names []string, generation int64) error {
	now := time.Now()
	if err := k.o.State.Ended.Add(ctx, group, names, now, generation); err != nil {
		return err
	}
	return k.endDistilled(ctx, group, names, now)
}

// Restore makes ended messages of a group valid again, and their distilled facts.
func (k *Keeper) Restore(ctx context.Context, group string, names ...string) error {
	if err := k.o.State.Ended.Restore(ctx, group, names...); err != nil {
		return err
	}
	return k.endDistilled(ctx, group, names, time.Time{})
}

func (k *Keeper) endDistilled(ctx context.Context, group string, names []string, at time.Time) error {
	d, ok := k.o.Memory.Distiller()
	if !ok || len(names) == 0 {
		return nil
	}
	return d.EndDistilled(ctx, group, names, at)
}

// EndLine ends a line. Forgetting one of groups deletes it, too.
func (k *Keeper) EndLine(ctx context.Context, l *card.Line, generation int64, groups ...string) error {
	l.Was, l.State = l.State, card.Ended
	return k.cards().Put(ctx, *l, generation, groups...)
}

// Match is a message that says a text, or the source of a fact that does.
type Match struct {
	Name  string
	Text  string
	place string // hash of the place of the message; "" if unknown
}

// Matches returns the messages of a group that say a text, and the sources of facts that do. A
// search would leave out messages that repeat one another.
func (k *Keeper) Matches(ctx context.Context, group, text string) (list []Match, err error) {
	says := card.Sayer(text)
	places := make(map[string]string) // of messages, by name
	add := func(name, said string) {
		if says(said) && !slices.ContainsFunc(list, func(m Match) bool { return m.Name == name }) {
			list = append(list, Match{name, said, places[name]})
		}
	}
	for r, err := range k.o.Memory.Rows(ctx, group, graphiti.Filter{Text: true}) {
		if err != nil {
			return nil, err
		}
		places[r.Name] = gjson.Get(r.Source, "place").String()
		add(r.Name, r.Plain())
	}
	if d, ok := k.o.Memory.Distiller(); ok {
		err = d.Distilled(ctx, group, func(d *graphiti.Distilled) error {
			for _, name := range d.Sources {
				add(name, d.Text)
			}
			return nil
		})
	}
	return list, err
}

// EndTurn ends both messages of a person's turn in its groups, after a turn of a generation
// has replaced it, and deletes the standing text that it said and the person has not
// confirmed.
func (k *Keeper) EndTurn(ctx context.Context, who graphiti.Who, turn string, in []graphiti.Target, generation int64) error {
	names := graphiti.TurnNames(turn)
	said := message{k: k, Message: Message{Who: who}}
	var groups []string
	if own, ok := said.own(); ok {
		groups = append(groups, own)
	}
	for _, t := range in {
		if err := k.End(ctx, t.Group, names, generation); err != nil {
			return err
		}
		groups = append(groups, t.Group)
	}
	return k.cards().Remove(ctx, groups, func(l *card.Line) bool { return l.Turn == turn && l.State != card.Confirmed })
}
