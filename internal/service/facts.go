package service

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// The states of a statement or fact.
const (
	Valid = "valid" // also of a fact that is not valid yet
	Ended = "ended" // by its person, by a newer fact, or by Graphiti
)

// stateIf returns the state of a fact that is valid or not.
func stateIf(valid bool) string {
	if valid {
		return Valid
	}
	return Ended
}

// The origins of facts besides the kinds of promoted texts.
const (
	KindSaid = "said"
	KindFact = "fact"
)

// Version is a former text of a fact: corrected in the last thirty days, or replaced by a model.
type Version struct {
	Text  string `json:"text"`
	Until string `json:"until"`
	By    string `json:"by,omitempty"` // of the correction
}

// facts returns the facts of a group. If the search is for facts alone, it adds statements and promoted
// texts, with the texts that they replaced directly or not. The changes are the newest first.
func (f *finding) facts(ctx context.Context, o *ledger.Owned, changes []Change) (list []Found, err error) {
	group := o.Group
	ended, err := f.sv.o.State.Ended.In(ctx, group)
	filter := f.filter()
	filter.Client, filter.Text = strings.ToLower(f.in.Client), true
	for _, filter.Roles = range [][]graphiti.RoleType{{graphiti.RoleSystem}, {graphiti.RoleUser}} {
		if filter.Statements = filter.Roles[0] == graphiti.RoleUser; err == nil && f.in.Kind == KindFact {
			err = f.rows(ctx, o, filter)
		}
	}
	if err != nil {
		return nil, err
	}
	of := make(map[string]*Found) // by the ID of a statement, of a copy, or of a former version
	for i := range f.list {
		for _, c := range append(f.list[i].copies, f.list[i]) {
			if c.Group == group && c.Kind == KindFact {
				of[c.ID] = &f.list[i]
			}
		}
	}
	for i := range changes {
		c := &changes[i]
		at := slices.IndexFunc(c.Parts, func(p ChangedPart) bool {
			return p.Group == group && len(p.Added) > 0 && of[graphiti.MessageID(p.Added[0])] != nil
		})
		if at < 0 || c.What != "correct" || c.Undone != "" {
			continue
		}
		p, k := c.Parts[at], of[graphiti.MessageID(c.Parts[at].Added[0])]
		if err := f.sv.withTexts(ctx, &p); err != nil {
			return nil, err
		}
		for _, old := range p.Old {
			k.Before = slices.Insert(k.Before, 0, Version{old, c.Time, c.By})
		}
		for _, name := range p.Ended {
			of[graphiti.MessageID(name)] = k
		}
	}
	before := make(map[string][]Version)                                     // by the name of the newer fact
	err = f.sv.eachDistilled(ctx, group, func(d *graphiti.Distilled) error { // the oldest first
		k := Found{ID: graphiti.MessageID(d.Name), Text: d.Text, Hit: Hit{
			Kind: KindFact, Origin: KindFact, Role: string(graphiti.RoleUser), State: stateIf(d.Until.IsZero() || d.Until.After(time.Now())),
			Before: before[d.Name], Client: gjson.Get(d.Source, "client").Str, Episode: gjson.Get(d.Source, "episode").Str, Conversation: ledger.SessionOf(d.Source), at: d.Since.Truncate(time.Second),
		}}
		until := dateOf(d.Until)
		for _, m := range d.Sources { // "forget that …" ended the message
			if at, ok := ended[m]; ok {
				k.State, until = Ended, at
			}
		}
		if list = append(list, k); d.EndedBy != "" {
			before[d.EndedBy] = append(append(before[d.EndedBy], k.Before...), Version{Text: k.Text, Until: until})
		}
		return nil
	})
	return list, err
}

// originOf returns the origin of a statement or a promoted text, or "" for other messages.
func originOf(r *graphiti.Row) string {
	switch c, curated := graphiti.ParseCurated(r.Text); {
	case !curated || r.Role != graphiti.RoleSystem:
		return map[graphiti.RoleType]string{graphiti.RoleUser: KindSaid}[r.Role]
	case slices.Contains(graphiti.Kinds, c.Kind):
		return c.Kind
	}
	return ""
}

// dateOf returns a time in the format of answers, or "" for zero.
func dateOf(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}
