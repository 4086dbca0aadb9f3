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
	Owner   string `json:"owner,omitempty"`   // whose that is
	At      int64  `json:"at"`                // Unix seconds

	// Off takes the older entries with the same text from the same conversation
	// off the card.
	Off   bool `json:"off,omitempty"`
	group string
}

// same is what an entry and the one that takes it off have in common.
func (e *entry) same() [3]string { return [3]string{e.Kind, e.Text, e.Session} }

// list is the list that an entry is in.
func (e *entry) list() string {
	if e.Kind == rule {
		return sightings(e.group)
	}
	return list(e.group)
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
			err = errors.Join(err, c.addOnce(ctx, t, to, entry{Kind: t.Kind, Text: text, group: to.Group}))
		case t.Kind == graphiti.KindSessionSummary && to.Scope == graphiti.ScopeWorkspace:
			err = errors.Join(err, c.keepSummary(ctx, t, to.Group))
		case t.Kind == "" && t.Sure && to.Scope == graphiti.ScopeUser && t.OfSession() != "":
			for _, r := range person.Rules(t.User) {
				err = errors.Join(err, c.add(ctx, t, entry{Kind: rule, Text: r.Text, group: to.Group}))
			}
		}
	}
	return err
}

// addOnce adds what does not stand there already.
func (c Cards) addOnce(ctx context.Context, t *ledger.Turn, to graphiti.Target, e entry) error {
	found, err := c.read(ctx, []graphiti.Target{to})
	if err != nil {
		return err
	}
	there, _ := standing(found[to.Group])
	if slices.ContainsFunc(there, func(o entry) bool { return o.Kind == e.Kind && o.Text == shorten(e.Text) }) {
		return nil
	}
	return c.add(ctx, t, e)
}

func (c Cards) add(ctx context.Context, t *ledger.Turn, e entry) error {
	e.Text, e.Session, e.Owner, e.At = shorten(e.Text), t.OfSession(), t.Owner, t.Said.Unix()
	if e.Text == "" {
		return nil
	}
	return c.put(ctx, e, t.Generation)
}

// put adds an entry to its list. It ends with its group, and with its conversation.
func (c Cards) put(ctx context.Context, e entry, generation int64) error {
	scopes := []string{e.group}
	if e.Session != "" {
		scopes = append(scopes, graphiti.SessionScopeOf(e.Session, ""), graphiti.SessionScopeOf(e.Session, e.Owner))
	}
	body, _ := json.Marshal(e) // strings and numbers only
	return c.Lists.Add(ctx, e.list(), body, generation, scopes...)
}

// TakeOff takes a line off the card of a caller who reads those groups: the line as
// it stands there, or only what it says. It returns the lines that it took off; said or promoted
// again later, they stand there again. owner is the owner of the conversations of
// entries that do not name one.
func (c Cards) TakeOff(ctx context.Context, reads []graphiti.Target, line, owner string, generation int64) (off []string, err error) {
	found, err := c.read(ctx, reads)
	if err != nil {
		return nil, err
	}
	line = strings.Join(strings.Fields(line), " ")
	for _, r := range reads {
		shown, behind := standing(found[r.Group])
		for i, e := range shown {
			if text := e.fact().Text; !strings.EqualFold(line, e.Text) && !strings.EqualFold(line, text) {
				continue
			}
			off = append(off, e.fact().Text)
			for _, e := range behind[i] {
				if e.Off = true; e.Owner == "" {
					e.Owner = owner
				}
				err = errors.Join(err, c.put(ctx, e, generation))
			}
		}
	}
	return off, err
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

// Waiting are the rules that wait for their person to confirm them, in the words in
// which they were said last: such as name something to fetch or to run.
func (c Cards) Waiting(ctx context.Context, reads []graphiti.Target) (texts []string, err error) {
	found, err := c.read(ctx, reads)
	for _, r := range reads {
		all, _ := said(found[r.Group])
		for _, e := range all {
			promoted := func(o entry) bool { return o.Kind != rule && strings.EqualFold(o.Text, e.Text) }
			if waits(&e) && !slices.ContainsFunc(all, promoted) && !slices.Contains(texts, e.Text) {
				texts = append(texts, e.Text)
			}
		}
	}
	return texts, err
}

// waits reports whether an entry waits for its person.
func waits(e *entry) bool { return e.Kind == rule && person.RuleOf(e.Text).Acts() }

// Facts are what stands on the card of a caller who reads those groups, the more
// important first: what was laid down for the project, and then for the person,
// of each the newest first.
func (c Cards) Facts(ctx context.Context, reads []graphiti.Target) ([]graphiti.Fact, error) {
	if len(reads) == 0 {
		return nil, nil
	}
	found, err := c.read(ctx, reads)
	if err != nil {
		return nil, err
	}
	reads = slices.Clone(reads)
	slices.SortStableFunc(reads, func(a, b graphiti.Target) int { return cmp.Compare(place(a.Scope), place(b.Scope)) })
	var facts []graphiti.Fact
	seen := make(map[string]bool)
	for _, r := range reads {
		all, _ := standing(found[r.Group])
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

// read returns the entries of groups, the newest of each list first.
func (c Cards) read(ctx context.Context, reads []graphiti.Target) (map[string][]entry, error) {
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
	return found, err
}

// order is which scopes come first; others come last.
var order = []graphiti.Scope{graphiti.ScopeWorkspace, graphiti.ScopeSession, graphiti.ScopeSystem, graphiti.ScopeUser}

func place(s graphiti.Scope) int {
	if i := slices.Index(order, s); i >= 0 {
		return i
	}
	return len(order)
}

// standing is what is said, without the rules that wait for their person. behind are
// the entries by which each stands there.
func standing(all []entry) (out []entry, behind [][]entry) {
	out, behind = said(all)
	for i := len(out) - 1; i >= 0; i-- {
		if waits(&out[i]) {
			out, behind = slices.Delete(out, i, i+1), slices.Delete(behind, i, i+1)
		}
	}
	return out, behind
}

// said leaves what was promoted, and of rules the newest wording of those that
// were said in enough conversations.
func said(all []entry) (out []entry, behind [][]entry) {
	type sightings struct {
		newest entry
		rule   person.Rule
		in     []string // conversations
		all    []entry
	}
	var rules []sightings
	off := make(map[[3]string]bool)
	for _, e := range all {
		if e.Off {
			off[e.same()] = true
		}
		if off[e.same()] {
			continue
		}
		if e.Kind != rule {
			out, behind = append(out, e), append(behind, []entry{e})
			continue
		}
		r := person.RuleOf(e.Text)
		i := slices.IndexFunc(rules, func(s sightings) bool { return s.rule.Same(r) })
		if i < 0 {
			i, rules = len(rules), append(rules, sightings{newest: e, rule: r})
		}
		if e.At > rules[i].newest.At {
			rules[i].newest = e
		}
		if !slices.Contains(rules[i].in, e.Session) {
			rules[i].in = append(rules[i].in, e.Session)
		}
		rules[i].all = append(rules[i].all, e)
	}
	for _, s := range rules {
		if len(s.in) >= talks {
			out, behind = append(out, s.newest), append(behind, s.all)
		}
	}
	return out, behind
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
