package service

import (
	"context"
	"slices"
	"time"

	"github.com/tidwall/gjson"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/words"
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

// facts returns the facts of a group, and if the search is for facts alone, statements and promoted
// texts, with the texts that they replaced directly or not. The changes are the newest first.
func (f *finding) facts(ctx context.Context, group string, changes []Change) (list []Found, err error) {
	ended, err := f.sv.o.State.Ended.In(ctx, group)
	if err == nil && f.in.Kind == KindFact {
		list, err = f.statements(ctx, group, ended)
	}
	if err != nil {
		return nil, err
	}
	of := make(map[string]*Found) // by the ID of a statement, or of a former version
	for i := range list {
		of[list[i].ID] = &list[i]
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

// statements returns the statements and promoted texts of a group that the search selects, in its
// order. The first message with a text stands for its copies. The memory is read only until the list
// is full.
func (f *finding) statements(ctx context.Context, group string, ended map[string]string) (list []Found, err error) {
	at := make(map[string]int) // index in the list, by origin and words
	add := func(page []Found) {
		slices.Reverse(page) // the first stored one of each second first
		slices.SortStableFunc(page, func(a, b Found) int { return b.at.Compare(a.at) })
		for _, k := range page {
			same := k.Origin + "\n" + words.Key(k.Text)
			if i, again := at[same]; again {
				list[i].Said, list[i].copies = list[i].Said+1, append(list[i].copies, k.ID)
				continue
			}
			at[same] = len(list)
			list = append(list, k)
		}
	}
	filter := f.filter()
	for _, role := range []graphiti.RoleType{graphiti.RoleSystem, graphiti.RoleUser} {
		var page []Found
		read := 0
		filter.Roles, filter.Text, filter.Statements = []graphiti.RoleType{role}, true, role == graphiti.RoleUser
		for r, err := range f.sv.rows(ctx, ledger.Part{Group: group}, filter) {
			if err != nil {
				return nil, err
			}
			if origin := originOf(&r); origin != "" {
				page = append(page, Found{ID: r.ID.String(), Text: r.Plain(), Hit: Hit{
					Kind: KindFact, Origin: origin, Role: string(graphiti.RoleUser), Message: true, State: stateIf(ended[r.Name] == ""), at: r.Said.Truncate(time.Second),
				}})
			}
			if read++; read%pageStatements > 0 {
				continue
			}
			add(page)
			page = nil
			if role == graphiti.RoleUser && len(list) >= f.in.Limit {
				f.rest += r.Rest
				break
			}
		}
		add(page)
	}
	return list, nil
}

// pageStatements is the number of messages to read at a time until a list is full.
const pageStatements = 64

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
