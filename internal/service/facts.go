package service

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/tidwall/gjson"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/words"
)

// State is the validity of a statement or fact.
type State string

// The states. A later fact, or Graphiti's end of validity, supersedes a fact.
const (
	Valid      State = "valid"
	Superseded State = "superseded"
	Expired    State = "expired" // withdrawn by Graphiti
	Later      State = "later"   // not valid yet
	Ended      State = "ended"   // ended by the person with "forget that …"; memory restore undoes it
)

// Known is a promoted text, a statement of a person, a distilled fact, or a fact of Graphiti's.
type Known struct {
	ID    string `json:"id,omitempty"` // of the message or distilled fact
	Group string `json:"group"`
	Scope string `json:"scope"`
	Kind  string `json:"kind"` // one of graphiti.Kinds, said, or fact
	Text  string `json:"text"`
	Since string `json:"since,omitempty"`
	Until string `json:"until,omitempty"`
	State State  `json:"state"`

	Said   int       `json:"said,omitempty"`   // other messages with these words, which have no row
	Before []Version `json:"before,omitempty"` // oldest first

	copies               []string // IDs of Said
	client, conversation string   // of the last message of a fact
}

// Version is a former text of a fact: corrected in the last thirty days, or replaced by a model.
type Version struct {
	Text  string `json:"text"`
	Until string `json:"until"`
	By    string `json:"by,omitempty"` // of the correction
}

// The kinds besides those of promoted texts.
const (
	KindSaid = "said"
	KindFact = "fact"
)

// markEnded marks the statements that their person ended.
func (sv *Service) markEnded(ctx context.Context, group string, list []Known) error {
	since, err := sv.o.State.Ended.In(ctx, group)
	if err != nil || len(since) == 0 {
		return err
	}
	ended := make(map[string]string, len(since))
	for name, at := range since {
		ended[graphiti.MessageID(name)] = at
	}
	for i := range list {
		if at, ok := ended[list[i].ID]; ok {
			list[i].State, list[i].Until = Ended, at
		}
	}
	return nil
}

// markRecords marks the messages that their person ended.
func (sv *Service) markRecords(ctx context.Context, groups []string, list []Record) error {
	since, err := sv.o.State.Ended.In(ctx, groups...)
	for i := range list {
		list[i].Ended = since[list[i].Name]
	}
	return err
}

// said returns the statements and promoted texts of a group that a filter selects, in its order. The
// first message with a text stands for its copies. The memory is read only until the list is full;
// unread counts the messages that were not read.
func (sv *Service) said(ctx context.Context, t graphiti.Target, limit int, filter graphiti.Filter) (list []Known, unread int, err error) {
	at := make(map[string]int) // index in the list, by kind and words
	add := func(page []Known) {
		slices.Reverse(page) // the first stored one of each second first
		slices.SortStableFunc(page, func(a, b Known) int { return cmp.Compare(b.Since, a.Since) })
		for _, k := range page {
			same := k.Kind + "\n" + words.Key(k.Text)
			if i, again := at[same]; again {
				list[i].Said, list[i].copies = list[i].Said+1, append(list[i].copies, k.ID)
				continue
			}
			at[same] = len(list)
			list = append(list, k)
		}
	}
	for _, roles := range [][]graphiti.RoleType{{graphiti.RoleSystem}, {graphiti.RoleUser}} {
		var page []Known
		read := 0
		filter.Roles, filter.Text, filter.Statements = roles, true, roles[0] == graphiti.RoleUser
		for r, err := range sv.o.Memory.Rows(ctx, t.Group, filter) {
			if err != nil {
				return nil, 0, withRemedy(err)
			}
			if k, ok := knownFrom(t, &r); ok {
				page = append(page, k)
			}
			if read++; read%pageStatements > 0 {
				continue
			}
			add(page)
			page = nil
			if roles[0] == graphiti.RoleUser && len(list) >= limit {
				unread = r.Rest
				break
			}
		}
		add(page)
	}
	return list, unread, sv.markEnded(ctx, t.Group, list)
}

// pageStatements is the number of messages to read at a time until a list is full.
const pageStatements = 256

func knownFrom(t graphiti.Target, r *graphiti.Row) (k Known, ok bool) {
	k = Known{ID: r.ID.String(), Group: t.Group, Scope: string(t.Scope), Kind: KindSaid, Text: r.Text, Since: dateOf(r.Said), State: Valid}
	if c, curated := graphiti.ParseCurated(r.Text); curated && r.Role == graphiti.RoleSystem {
		k.Kind, k.Text = c.Kind, c.Text
		return k, slices.Contains(graphiti.Kinds, c.Kind)
	}
	return k, r.Role == graphiti.RoleUser
}

// factsOf returns the distilled facts of a group, and Graphiti's.
func (sv *Service) factsOf(ctx context.Context, t graphiti.Target) (list []Known, err error) {
	now := time.Now()
	ended, err := sv.o.State.Ended.In(ctx, t.Group)
	if err != nil {
		return nil, err
	}
	before := make(map[string][]Version)                                     // by the name of the newer fact
	err = sv.eachDistilled(ctx, t.Group, func(d *graphiti.Distilled) error { // the oldest first
		f := graphiti.Fact{ValidAt: d.Since, InvalidAt: d.Until}
		k := Known{ID: graphiti.MessageID(d.Name), Group: t.Group, Scope: string(t.Scope), Kind: KindFact, Text: d.Text, Since: dateOf(d.Since), Before: before[d.Name], client: gjson.Get(d.Source, "client").Str, conversation: ledger.SessionOf(d.Source)}
		k.State, k.Until = stateOf(&f, now)
		for _, m := range d.Sources { // "forget that …" ended the message
			if at, ok := ended[m]; ok {
				k.State, k.Until = Ended, at
			}
		}
		if list = append(list, k); d.EndedBy != "" {
			before[d.EndedBy] = append(append(before[d.EndedBy], k.Before...), Version{Text: k.Text, Until: k.Until})
		}
		return nil
	})
	return list, err
}

// stateOf returns a fact's validity and its end.
func stateOf(f *graphiti.Fact, now time.Time) (s State, until string) {
	until = dateOf(f.InvalidAt)
	switch {
	case !f.ExpiredAt.IsZero() && !f.ExpiredAt.After(now):
		return Expired, cmp.Or(until, dateOf(f.ExpiredAt))
	case !f.InvalidAt.IsZero() && !f.InvalidAt.After(now):
		return Superseded, until
	case f.ValidAt.After(now):
		return Later, until
	}
	return Valid, until
}

// dateOf returns a time in the format of answers, or "" for zero.
func dateOf(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}
