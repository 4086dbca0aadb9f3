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
)

// Lists keeps lists of short texts, bounded in number and in time. An entry is deleted
// when one of its scopes is forgotten, and is not added when one of them has a newer
// generation.
type Lists interface {
	Add(ctx context.Context, list string, entry []byte, generation int64, scopes ...string) error

	// Entries calls f for the entries of lists, the newest of each first.
	Entries(ctx context.Context, f func(list string, entry []byte), lists ...string) error

	// Remove deletes the entries of lists for which meant returns true.
	Remove(ctx context.Context, meant func(entry []byte) bool, lists ...string) error
}

// Cards notes the entries of cards, and finds them. It is safe for concurrent use.
type Cards struct {
	Lists Lists

	// Own keeps what a person said about themselves in two conversations, in their own
	// memory. It must not wait. nil: nothing is kept.
	Own func([]ledger.Turn) bool
}

// maxChars bounds one entry, in characters: a card has room for a few.
const maxChars = 200

// laid are the kinds of promoted texts that a card shows. Others, such as the state of a
// task, were true only for a time.
var laid = []string{"decision", "preference", "procedure", "terminology"}

// entry is one entry of a list.
type entry struct {
	Kind    string `json:"kind"` // one of laid, or rule
	Text    string `json:"text"`
	Session string `json:"session,omitempty"` // hash of the conversation
	Owner   string `json:"owner,omitempty"`   // whose conversation that is
	At      int64  `json:"at"`                // Unix seconds
	Place   string `json:"place,omitempty"`   // stands for the project that a rule was said in

	// Off takes the older entries with the same text from the same conversation
	// off the card.
	Off bool `json:"off,omitempty"`

	// Often says that what was taken for a rule is a routine request.
	Often bool `json:"often,omitempty"`

	group string
	scope graphiti.Scope
}

// same returns what an entry and the one that takes it off have in common.
func (e *entry) same() [4]string { return [4]string{e.Kind, e.Text, e.Session, e.group} }

// list is the list that an entry is in.
func (e *entry) list() string {
	if e.Kind == rule {
		return sightings(e.group)
	}
	return list(e.group)
}

const rule = "rule"

func list(group string) string      { return "card:" + group }
func sightings(group string) string { return "said:" + group }

// keepFor bounds how long Keep waits for the lists.
const keepFor = 5 * time.Second

// Keep notes the entries of a turn that some groups have now got. Most turns have none.
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
		case t.Kind == "" && t.Sure && t.OfSession() != "" && (to.Scope == graphiti.ScopeUser || to.Scope == graphiti.ScopeWorkspace):
			err = errors.Join(err, c.keepRules(ctx, t, to))
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
	there, _ := standing(found)
	if slices.ContainsFunc(there, func(o entry) bool { return o.Kind == e.Kind && o.Text == shorten(e.Text) }) {
		return nil
	}
	return c.add(ctx, t, e)
}

func (c Cards) add(ctx context.Context, t *ledger.Turn, e entry) error {
	e.Text, e.Session, e.Owner, e.At = shorten(e.Text), cmp.Or(e.Session, t.OfSession()), t.Owner, t.Said.Unix()
	if e.Text == "" {
		return nil
	}
	return c.put(ctx, e, t.Generation, groupsOf(t)...)
}

// put adds an entry to its list. It is deleted with its group, its conversation, and the
// groups in of.
func (c Cards) put(ctx context.Context, e entry, generation int64, of ...string) error {
	body, _ := json.Marshal(e) // strings and numbers only
	return c.Lists.Add(ctx, e.list(), body, generation, scopes(e.group, e.Session, e.Owner, of)...)
}

func scopes(group, session, owner string, of []string) []string {
	list := []string{group}
	for _, g := range of {
		if g != group {
			list = append(list, g)
		}
	}
	if session != "" {
		list = append(list, graphiti.SessionScopeOf(session, ""), graphiti.SessionScopeOf(session, owner))
	}
	return list
}

// TakeOff takes a line off the card of a caller who reads those groups: the line as the
// card shows it, or only its text. It returns the lines that it took off; when they are
// said or promoted again, the card shows them again. owner owns the conversations of
// entries that name no owner.
func (c Cards) TakeOff(ctx context.Context, reads []graphiti.Target, line, owner string, generation int64) (off []string, err error) {
	found, err := c.read(ctx, reads)
	if err != nil {
		return nil, err
	}
	line = strings.Join(strings.Fields(line), " ")
	shown, behind := standing(found)
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
	return off, err
}

// Forget deletes what was noted of a turn that a group held: a promoted text, and the
// rules with its words from its conversation, or from its time. Of a rule that was said
// in two conversations the wording is the later one's. Not every memory knows when
// something was said.
func (c Cards) Forget(ctx context.Context, t *ledger.Turn, group string) error {
	text, kind := t.User, t.Kind
	if curated, ok := graphiti.ParseCurated(text); ok {
		text, kind = curated.Text, curated.Kind
	}
	if kind == graphiti.KindSessionSummary {
		return c.Lists.Remove(ctx, func([]byte) bool { return true }, summaries(group, t.OfSession(), t.Owner))
	}
	all := strings.ToLower(strings.Join(strings.Fields(text), " "))
	return c.Lists.Remove(ctx, func(body []byte) bool {
		var e entry
		switch {
		case json.Unmarshal(body, &e) != nil:
			return false
		case e.Kind != rule:
			return e.Kind == kind && strings.EqualFold(e.Text, shorten(text))
		}
		said, there := strings.Contains(all, strings.ToLower(strings.TrimSuffix(e.Text, "…"))), e.Session == t.OfSession()
		return said && there || e.At == t.Said.Unix() && (said || there)
	}, list(group), sightings(group))
}

// shorten returns a text in one line, cut before a word when it is long.
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

// Waiting returns the rules that their person has to confirm, in their newest wording:
// those that name something to fetch or to run.
func (c Cards) Waiting(ctx context.Context, reads []graphiti.Target) (texts []string, err error) {
	found, err := c.read(ctx, reads)
	all, _ := said(found)
	for _, e := range all {
		promoted := func(o entry) bool { return o.Kind != rule && strings.EqualFold(o.Text, e.Text) }
		if waits(&e) && !slices.ContainsFunc(all, promoted) && !slices.Contains(texts, e.Text) {
			texts = append(texts, e.Text)
		}
	}
	return texts, err
}

// waits reports whether an entry waits for its person.
func waits(e *entry) bool { return e.Kind == rule && personRule{Text: e.Text}.acts() }

// Facts returns the card of a caller who reads those groups: first what was laid down for
// the project, and then for the person, each with the newest first.
func (c Cards) Facts(ctx context.Context, reads []graphiti.Target) ([]graphiti.Fact, error) {
	if len(reads) == 0 {
		return nil, nil
	}
	found, err := c.read(ctx, reads)
	if err != nil {
		return nil, err
	}
	all, _ := standing(found)
	slices.SortStableFunc(all, func(a, b entry) int {
		return cmp.Or(cmp.Compare(place(a.scope), place(b.scope)), cmp.Compare(b.At, a.At))
	})
	var facts []graphiti.Fact
	seen := make(map[string]bool)
	for _, e := range all {
		if text := strings.ToLower(e.Text); !seen[text] {
			seen[text] = true
			facts = append(facts, e.fact())
		}
	}
	return facts, nil
}

// read returns the entries of groups, the newest of each list first.
func (c Cards) read(ctx context.Context, reads []graphiti.Target) (found []entry, err error) {
	of := make(map[string]graphiti.Target) // by list
	var lists []string
	for _, r := range reads {
		if r.Scope == "" {
			r.Scope, _ = graphiti.ScopeOf(r.Group)
		}
		for _, l := range []string{list(r.Group), sightings(r.Group)} {
			of[l] = r
			lists = append(lists, l)
		}
	}
	err = c.Lists.Entries(ctx, func(list string, body []byte) {
		var e entry
		if json.Unmarshal(body, &e) == nil {
			e.group, e.scope = of[list].Group, of[list].Scope
			found = append(found, e)
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

// standing returns the entries that the card shows, without the rules that wait for
// confirmation. behind has all entries from which each comes.
func standing(all []entry) (out []entry, behind [][]entry) {
	out, behind = said(all)
	for i := len(out) - 1; i >= 0; i-- {
		if waits(&out[i]) {
			out, behind = slices.Delete(out, i, i+1), slices.Delete(behind, i, i+1)
		}
	}
	return out, behind
}

// said returns the promoted entries, and the newest wording of each rule that holds.
func said(all []entry) (out []entry, behind [][]entry) {
	var rules []saying
	off, read := make(map[[4]string]bool), make(map[string]personRule)
	for _, e := range all {
		if e.Off {
			off[e.same()] = true
		}
		switch {
		case off[e.same()]:
		case e.Kind == rule:
			r, ok := read[e.Text]
			if !ok { // in the project's list, and in the person's
				r = ruleOf(e.Text)
				read[e.Text] = r
			}
			rules = append(rules, saying{e, r})
		default:
			out, behind = append(out, e), append(behind, []entry{e})
		}
	}
	for _, same := range alikeOf(rules) {
		if e, ok := hold(same); ok {
			out = append(out, e)
			behind = append(behind, nil)
			for _, s := range same {
				behind[len(behind)-1] = append(behind[len(behind)-1], s.entry)
			}
		}
	}
	return out, behind
}

// fact returns an entry in the form in which a memory shows a promoted text, so that it
// is not shown twice when a search finds it too.
func (e *entry) fact() graphiti.Fact {
	at := time.Unix(e.At, 0).UTC()
	return graphiti.Fact{
		Text: strings.ReplaceAll(e.Kind, "_", " ") + ", " + at.Format(time.DateOnly) + ": " + e.Text, Group: e.group,
		CreatedAt: at, ValidAt: at, Dated: true,
	}
}
