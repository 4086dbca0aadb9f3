// Package card owns what stands at the beginning of conversations, whether or not
// a word fits: what a person laid down, for a project and for themselves, and what
// summaries say of conversations.
//
// It notes that when a turn is kept, whichever memory keeps it, and must not know
// how it is shown, nor ask a memory: its lists are read before each first answer
// of a conversation. Of our packages it may import capture/ledger, graphiti and
// graphiti/person.
package card

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/person"
)

// Lists keeps lists of short texts, bounded in number and in time. An entry ends
// when one of its scopes is forgotten, and is not kept where one of them has a
// newer generation.
type Lists interface {
	Add(ctx context.Context, list string, entry []byte, generation int64, scopes ...string) error

	// Entries calls f for the entries of lists, the newest of each first.
	Entries(ctx context.Context, f func(list string, entry []byte), lists ...string) error
}

// Cards notes what stands on cards, and finds it. It is safe for concurrent use.
type Cards struct{ Lists Lists }

const (
	// talks is in how many conversations a person must have said a rule.
	talks = 2

	// maxChars bounds one entry, in characters: a card has room for a few.
	maxChars = 200
)

// laid are the kinds of promoted texts that stand on a card. Others, such as how
// far a task is, tell what was so at a time.
var laid = []string{"decision", "preference", "procedure", "terminology"}

// entry is one thing that was laid down.
type entry struct {
	Kind    string `json:"kind"` // one of laid, or rule
	Text    string `json:"text"`
	Session string `json:"session,omitempty"` // hash of the conversation
	At      int64  `json:"at"`                // Unix seconds
	group   string
}

const rule = "rule"

func list(group string) string      { return "card:" + group }
func sightings(group string) string { return "rules:" + group }

// keepFor bounds how long a store is waited for.
const keepFor = 5 * time.Second

// Keep notes what was laid down in a turn that some groups have got now. Of most
// turns that is nothing.
func (c Cards) Keep(t *ledger.Turn, groups []string) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), keepFor)
	defer cancel()
	for _, to := range t.Targets {
		if !slices.Contains(groups, to.Group) {
			continue
		}
		switch {
		case slices.Contains(laid, t.Kind):
			text := t.User
			if curated, ok := graphiti.ParseCurated(text); ok { // from an export
				text = curated.Text
			}
			err = errors.Join(err, c.add(ctx, list(to.Group), t, to.Group, entry{Kind: t.Kind, Text: text}))
		case t.Kind == graphiti.KindSessionSummary && to.Scope == graphiti.ScopeWorkspace:
			err = errors.Join(err, c.keepSummary(ctx, t, to.Group))
		case t.Kind == "" && to.Scope == graphiti.ScopeUser && t.OfSession() != "":
			for _, r := range person.Rules(t.User) {
				err = errors.Join(err, c.add(ctx, sightings(to.Group), t, to.Group, entry{Kind: rule, Text: r.Text}))
			}
		}
	}
	return err
}

func (c Cards) add(ctx context.Context, list string, t *ledger.Turn, group string, e entry) error {
	e.Text, e.Session, e.At = shorten(e.Text), t.OfSession(), t.Said.Unix()
	if e.Text == "" {
		return nil
	}
	scopes := []string{group}
	if e.Session != "" {
		scopes = append(scopes, graphiti.SessionScopeOf(e.Session, ""), graphiti.SessionScopeOf(e.Session, t.Owner))
	}
	body, _ := json.Marshal(e) // strings and numbers only
	return c.Lists.Add(ctx, list, body, t.Generation, scopes...)
}

// shorten is a text in one line, cut before a word where it is long.
func shorten(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if utf8.RuneCountInString(text) <= maxChars {
		return text
	}
	text = string([]rune(text)[:maxChars-1])
	if i := strings.LastIndexByte(text, ' '); i > maxChars/2 {
		text = text[:i]
	}
	return text + "…"
}

// Facts are what stands on the card of a caller who reads those groups, the more
// important first: what was laid down for the project, and then for the person,
// of each the newest first.
func (c Cards) Facts(ctx context.Context, reads []graphiti.Target) ([]graphiti.Fact, error) {
	if len(reads) == 0 {
		return nil, nil
	}
	reads = slices.Clone(reads)
	slices.SortStableFunc(reads, func(a, b graphiti.Target) int { return cmp.Compare(place(a.Scope), place(b.Scope)) })
	of := make(map[string]string) // the group of each list
	var lists []string
	for _, r := range reads {
		for _, l := range []string{list(r.Group), sightings(r.Group)} {
			of[l] = r.Group
			lists = append(lists, l)
		}
	}
	found := make(map[string][]entry) // by group
	err := c.Lists.Entries(ctx, func(list string, body []byte) {
		var e entry
		if json.Unmarshal(body, &e) == nil {
			e.group = of[list]
			found[e.group] = append(found[e.group], e)
		}
	}, lists...)
	if err != nil {
		return nil, err
	}
	var facts []graphiti.Fact
	seen := make(map[string]bool)
	for _, r := range reads {
		all := standing(found[r.Group])
		slices.SortStableFunc(all, func(a, b entry) int { return cmp.Compare(b.At, a.At) })
		for _, e := range all {
			if text := strings.ToLower(e.Text); !seen[text] {
				seen[text] = true
				facts = append(facts, e.fact())
			}
		}
	}
	return facts, nil
}

// order is which scopes come first; others come last.
var order = []graphiti.Scope{graphiti.ScopeWorkspace, graphiti.ScopeSession, graphiti.ScopeSystem, graphiti.ScopeUser}

func place(s graphiti.Scope) int {
	if i := slices.Index(order, s); i >= 0 {
		return i
	}
	return len(order)
}

// standing leaves what was promoted, and of rules the newest wording of those
// that were said in enough conversations.
func standing(all []entry) (out []entry) {
	type said struct {
		newest entry
		rule   person.Rule
		in     []string // conversations
	}
	var rules []said
	for _, e := range all {
		if e.Kind != rule {
			out = append(out, e)
			continue
		}
		r := person.RuleOf(e.Text)
		i := slices.IndexFunc(rules, func(s said) bool { return s.rule.Same(r) })
		if i < 0 {
			i, rules = len(rules), append(rules, said{newest: e, rule: r})
		}
		if e.At > rules[i].newest.At {
			rules[i].newest = e
		}
		if !slices.Contains(rules[i].in, e.Session) {
			rules[i].in = append(rules[i].in, e.Session)
		}
	}
	for _, s := range rules {
		if len(s.in) >= talks {
			out = append(out, s.newest)
		}
	}
	return out
}

// fact is an entry as a memory shows a promoted text, so that what finds it too
// does not show it twice.
func (e *entry) fact() graphiti.Fact {
	at := time.Unix(e.At, 0).UTC()
	return graphiti.Fact{
		Text: strings.ReplaceAll(e.Kind, "_", " ") + ", " + at.Format(time.DateOnly) + ": " + e.Text, Group: e.group,
		CreatedAt: at, ValidAt: at, Dated: true,
	}
}
