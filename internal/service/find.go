package service

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/card"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/words"
)

// SearchFilter makes a search one for everything stored in the selected memory, not only for what a
// chat recalls. The zero value is no filter.
type SearchFilter struct {
	Everything bool   `json:"everything,omitempty" help:"search everything stored, in all projects unless a flag names one"`
	Client     string `json:"client,omitempty" help:"only texts from this client, such as codex"`
	Since      string `json:"since,omitempty" help:"only texts since this day, such as 2026-11-24, or time"`
	Until      string `json:"until,omitempty" help:"only texts up to the end of this day, or before this time"`
	Speaker    string `json:"speaker,omitempty" help:"only texts by person or model"`
	Kind       string `json:"kind,omitempty" help:"only one kind: message, fact, rule or work"`
	State      string `json:"state,omitempty" help:"only one state: valid, ended or waiting"`
	Newest     bool   `json:"newest,omitempty" help:"only texts with all words, the newest first"`
}

// Waiting is the state of a line that waits for its person's confirmation, or of a held message.
const Waiting = "waiting"

// The values of a SearchFilter.
var (
	Speakers = []string{"person", "model"}
	Kinds    = []string{"message", KindFact, card.KindRule, "work"}
	States   = []string{string(Valid), string(Ended), Waiting}
)

// SearchRequest is the input of Search.
type SearchRequest struct {
	Selector
	SearchFilter
	Query string `json:"query"`
	All   bool   `json:"all,omitempty" flag:"explain" help:"judge as a chat with this text does, with strengths and keys"`
	Limit int    `json:"limit,omitempty" help:"with a filter: how many"`
	Skip  int    `json:"skip,omitempty"` // with a filter: number of results to omit

	own bool // the caller is no operator, so shared groups are omitted
}

// Check returns an error for an invalid filter.
func (r *SearchRequest) Check() error {
	f := &r.SearchFilter
	for _, one := range []struct {
		name, value string
		of          []string
	}{{"speaker", f.Speaker, Speakers}, {"kind", f.Kind, Kinds}, {"state", f.State, States}} {
		if one.value != "" && !slices.Contains(one.of, one.value) {
			return invalid(fmt.Sprintf("%s: unknown value %q; write one of %s", one.name, one.value, strings.Join(one.of, ", ")))
		}
	}
	_, since := DayOf(f.Since, false, time.UTC)
	_, until := DayOf(f.Until, true, time.UTC)
	switch {
	case since != nil || until != nil:
		return cmp.Or(since, until)
	case r.All && *f != (SearchFilter{}):
		return invalid("explain: judges what a chat recalls, which has no filter; remove the filters")
	}
	return CheckLimit(r.Limit)
}

// DayOf parses a time, or a day in a zone. Of a day it returns the beginning, or the end.
func DayOf(text string, end bool, zone *time.Location) (at time.Time, err error) {
	if at, err = time.ParseInLocation(time.DateOnly, text, zone); err == nil {
		if end {
			at = at.AddDate(0, 0, 1)
		}
		return at, nil
	}
	return momentIn(text)
}

// Hit is a result of a search with a filter.
type Hit struct {
	Kind         string    `json:"kind"` // one of Kinds
	State        string    `json:"state"`
	Role         string    `json:"role,omitempty"`
	Client       string    `json:"client,omitempty"`
	In           string    `json:"in,omitempty"`           // name of its memory
	Conversation string    `json:"conversation,omitempty"` // hash
	Turn         string    `json:"turn,omitempty"`
	ByMeaning    bool      `json:"by_meaning,omitempty"` // it has no word of the query
	Line         *Standing `json:"line,omitempty"`       // of a rule
	Marks        [][2]int  `json:"marks,omitempty"`      // places of the query's words in the text, in bytes

	at    time.Time
	found int // words of the query
}

func (r *Found) key() string { return r.Kind + cmp.Or(r.ID, r.Turn) }

// finding collects the results of a search with a filter.
type finding struct {
	sv           *Service
	in           *SearchRequest
	words        []string // of the query
	since, until time.Time
	most         int // results of one group to read
	list         []Found
	rest         int             // results that were not read
	seen         map[string]bool // by key; a personal statement in a project is in both groups
}

// find returns the texts that a filter selects: those with the most words of the query first, then
// the newest, and then those that have its meaning only.
func (sv *Service) find(ctx context.Context, in *SearchRequest) (out Searched, err error) {
	f := finding{sv: sv, in: in, words: words.Of(sv.o.Pipeline.Redacted(in.Query), maxQuery), most: in.Limit + 1, seen: make(map[string]bool)}
	f.since, _ = DayOf(in.Since, false, time.UTC) // Check has read both
	f.until, _ = DayOf(in.Until, true, time.UTC)
	out.Facts = []Found{}
	places, err := sv.stored(ctx, in)
	if err != nil {
		return out, err
	}
	for _, o := range places {
		out.Groups = append(out.Groups, o.Group)
	}
	for _, look := range []func(context.Context, []ledger.Owned) error{f.messages, f.facts, f.held, f.rules, f.work, f.meant} {
		if err := look(ctx, places); err != nil {
			return out, err
		}
	}
	slices.SortStableFunc(f.list, func(a, b Found) int {
		if by := b.found - a.found; by != 0 && !in.Newest {
			return by
		}
		return b.at.Compare(a.at)
	})
	out.All, out.AtMost = len(f.list)+f.rest, f.rest > 0
	out.Facts = append(out.Facts, f.list[:min(in.Limit, len(f.list))]...)
	for i := range out.Facts {
		out.Facts[i].excerpt(f.words)
	}
	return out, nil
}

// maxQuery is the number of words of a query to look up.
const maxQuery = 16

// stored returns the groups of a search with a filter, and for a session its parts of groups.
func (sv *Service) stored(ctx context.Context, in *SearchRequest) (places []ledger.Owned, err error) {
	if in.Session != "" {
		places, err = sv.shownPlaces(ctx, in.Selector)
	} else {
		places, _, err = sv.owned(ctx, in.Selector)
	}
	return slices.DeleteFunc(places, func(o ledger.Owned) bool {
		return in.own && o.Shared || sv.o.State.Generations.Blocks(o.Group)
	}), err
}

// wants reports whether the filter selects a kind.
func (f *finding) wants(kind string) bool { return f.in.Kind == "" || f.in.Kind == kind }

// count returns the number of the query's words in a text.
func (f *finding) count(text string) (n int) {
	has := words.Of(text, len(text))
	for _, w := range f.words {
		if slices.Contains(has, w) {
			n++
		}
	}
	return n
}

// add adds a result if the filter selects it.
func (f *finding) add(r Found) {
	least := min(1, len(f.words))
	if f.in.Newest {
		least = len(f.words)
	}
	role := map[string]string{"user": "person", "system": "person", "assistant": "model"}[r.Role]
	switch {
	case r.found < least && !r.ByMeaning, f.seen[r.key()],
		f.in.Speaker != "" && role != f.in.Speaker,
		f.in.State != "" && r.State != f.in.State,
		!f.since.IsZero() && r.at.Before(f.since), !f.until.IsZero() && !r.at.Before(f.until),
		f.in.Client != "" && !isClient(r.Client, f.in.Client):
		return
	}
	f.seen[r.key()] = true
	r.Since = dateOf(r.at)
	f.list = append(f.list, r)
}

// isClient reports whether a client has a name, regardless of case and of the signs in it.
func isClient(client, name string) bool {
	plain := func(s string) string {
		return strings.Map(func(r rune) rune {
			if strings.ContainsRune(" -_.", r) {
				return -1
			}
			return r
		}, strings.ToLower(s))
	}
	return strings.Contains(plain(client), plain(name))
}

// messages adds messages and promoted texts.
func (f *finding) messages(ctx context.Context, places []ledger.Owned) error {
	if !f.wants("message") || f.in.State == Waiting {
		return nil
	}
	for i := range places {
		o := &places[i]
		ended, err := f.sv.o.State.Ended.In(ctx, o.Group)
		if err != nil {
			return err
		}
		filter := graphiti.Filter{Since: f.since, Before: f.until, Words: f.words, Newest: f.in.Newest || len(f.words) == 0, Text: true}
		if f.in.State == string(Ended) {
			if len(ended) == 0 {
				continue
			}
			filter = graphiti.Filter{Names: slices.Collect(maps.Keys(ended)), Text: true}
		}
		before := len(f.list)
		for r, err := range f.sv.rows(ctx, ledger.Part{Group: o.Group, Session: o.Session, Owner: o.Owner}, filter) {
			if err != nil {
				return err
			}
			f.add(f.message(o, &r, ended[r.Name] != ""))
			if len(f.list)-before == f.most {
				f.rest += r.Rest
				break
			}
		}
	}
	return nil
}

// message returns a message as a result.
func (f *finding) message(o *ledger.Owned, r *graphiti.Row, ended bool) Found {
	turn, _ := graphiti.TurnOf(r.Name)
	h := Hit{
		Kind: "message", State: string(Valid), Role: string(r.Role), Client: gjson.Get(r.Source, "client").Str, In: f.name(o),
		Conversation: sessionIn(o, r), Turn: turn, at: r.Said, found: cmp.Or(r.Found, f.count(r.Text)),
	}
	if ended {
		h.State = string(Ended)
	}
	return Found{ID: r.ID.String(), Group: o.Group, Scope: o.Scope, Text: textOf(r), Hit: &h}
}

// name returns the display name of a group.
func (f *finding) name(o *ledger.Owned) string { return nameOf(*o, f.in.Whose()) }

// facts adds distilled facts. Their clients are unknown.
func (f *finding) facts(ctx context.Context, places []ledger.Owned) error {
	if !f.wants(KindFact) || f.in.State == Waiting || f.in.Session != "" {
		return nil
	}
	for i := range places {
		o := &places[i]
		list, err := f.sv.factsOf(ctx, graphiti.Target{Scope: graphiti.Scope(o.Scope), Group: o.Group})
		if err != nil {
			return err
		}
		for _, k := range list {
			at, _ := momentIn(k.Since) // factsOf has written it
			h := Hit{Kind: KindFact, State: string(k.State), Role: string(graphiti.RoleUser), In: f.name(o), at: at, found: f.count(k.Text)}
			if k.State != Valid && k.State != Later {
				h.State = string(Ended)
			}
			f.add(Found{ID: k.ID, Group: o.Group, Scope: o.Scope, Text: k.Text, Hit: &h})
		}
	}
	return nil
}

// held adds messages that wait for a sign of their author.
func (f *finding) held(_ context.Context, places []ledger.Owned) error {
	if !f.wants("message") {
		return nil
	}
	list, err := f.sv.heldIn(places)
	for i := range list {
		t := &list[i].Turn
		h := Hit{Kind: "message", State: Waiting, Role: string(graphiti.RoleUser), Client: t.Client, Conversation: t.OfSession(), at: t.Said, found: f.count(t.User)}
		f.add(Found{ID: heldID(&list[i]), Text: t.User, Hit: &h})
	}
	return err
}

// rules adds lines of the card in any state.
func (f *finding) rules(ctx context.Context, places []ledger.Owned) error {
	if !f.wants(card.KindRule) || f.in.Session != "" {
		return nil
	}
	lines, _, err := f.sv.lines(ctx, f.in.Selector)
	if err != nil {
		return err
	}
	lines = withoutCopies(lines)
	for i := range lines {
		l := &lines[i]
		at := slices.IndexFunc(places, func(o ledger.Owned) bool { return o.Group == l.Group })
		if at < 0 {
			continue
		}
		s := standing(l)
		h := Hit{Kind: card.KindRule, State: string(Valid), Role: string(graphiti.RoleUser), Client: l.Program, In: f.name(&places[at]), Conversation: l.Session, Turn: l.Turn, Line: &s, at: time.Unix(l.At, 0), found: f.count(s.Text)}
		switch l.State {
		case card.Pending:
			h.State = Waiting
		case card.Rejected, card.Ended, card.Superseded:
			h.State = string(Ended)
		}
		f.add(Found{ID: l.ID, Group: l.Group, Scope: places[at].Scope, Text: s.Text, Hit: &h})
	}
	return nil
}

// work adds turns with tool calls. Their clients are unknown.
func (f *finding) work(ctx context.Context, places []ledger.Owned) error {
	if !f.wants("work") || f.in.Session != "" {
		return nil
	}
	for i := range places {
		o := &places[i]
		turns, err := f.sv.worked(ctx, o.Group)
		if err != nil {
			return err
		}
		for _, t := range turns {
			at, _ := momentIn(t.Time) // worked has written it
			text := strings.Join(t.Lines, "\n")
			h := Hit{Kind: "work", State: string(Valid), In: f.name(o), Conversation: t.Conversation, Turn: t.ID, at: at, found: f.count(text)}
			f.add(Found{Group: o.Group, Scope: o.Scope, Text: text, Hit: &h})
		}
	}
	return nil
}

// meant adds messages that have the meaning of the query, and none of its words. All others have
// been read.
func (f *finding) meant(ctx context.Context, places []ledger.Owned) error {
	if len(f.words) == 0 || f.in.Newest || f.rest > 0 || !f.wants("message") || f.in.State != "" && f.in.State != string(Valid) {
		return nil
	}
	for i := range places {
		o := &places[i]
		facts, err := f.sv.o.Memory.Search(ctx, []string{o.Group}, strings.TrimRight(f.sv.o.Pipeline.Redacted(f.in.Query), "?")+"?", f.sv.settings().MaxFacts)
		if err != nil {
			return withRemedy(err)
		}
		var names []string
		for _, found := range facts {
			if len(found.Messages) == 0 {
				names = append(names, found.Episode)
			}
		}
		if len(names) == 0 {
			continue
		}
		ended, err := f.sv.o.State.Ended.In(ctx, o.Group)
		if err != nil {
			return err
		}
		for r, err := range f.sv.rows(ctx, ledger.Part{Group: o.Group, Session: o.Session, Owner: o.Owner}, graphiti.Filter{Names: names, Text: true}) {
			if err != nil {
				return err
			}
			if one := f.message(o, &r, ended[r.Name] != ""); one.found == 0 {
				one.ByMeaning = true
				f.add(one)
			}
		}
	}
	return nil
}

// excerptBytes is the length of a text in a result, about.
const excerptBytes = 600

// excerpt cuts the text of a result to one line around the first word of a query, and marks the
// words.
func (r *Found) excerpt(wanted []string) {
	text := strings.Join(strings.Fields(r.Text), " ")
	r.Text, r.Marks = text, marksOf(text, wanted)
	if len(text) <= excerptBytes {
		return
	}
	from := 0
	if len(r.Marks) > 0 {
		from = min(max(0, r.Marks[0][0]-excerptBytes/4), len(text)-excerptBytes)
	}
	for from > 0 && text[from-1] != ' ' && r.Marks != nil && from < r.Marks[0][0] || !utf8.RuneStart(text[from]) {
		from++
	}
	end := min(from+excerptBytes, len(text))
	for end < len(text) && !utf8.RuneStart(text[end]) {
		end++
	}
	if r.Text = text[from:end]; from > 0 {
		r.Text = "…" + r.Text
	}
	if r.Marks = marksOf(r.Text, wanted); end < len(text) {
		r.Text += "…"
	}
}

// marksOf returns the places of words in a text of one line.
func marksOf(text string, wanted []string) (marks [][2]int) {
	for at := 0; at < len(text); at++ {
		end := at
		for end < len(text) && text[end] != ' ' {
			end++
		}
		token := strings.TrimFunc(text[at:end], isNoLetter)
		from := at + strings.Index(text[at:end], token)
		switch {
		case token == "" || len(wanted) == 0:
		case strings.ContainsFunc(token, hasNoSpaces):
			marks = append(marks, partsIn(token, from, wanted)...)
		case slices.ContainsFunc(words.Of(token, maxQuery), func(w string) bool { return slices.Contains(wanted, w) }):
			marks = append(marks, [2]int{from, from + len(token)})
		}
		at = end
	}
	return marks
}

func isNoLetter(r rune) bool { return !unicode.In(r, unicode.L, unicode.M, unicode.N) }

// hasNoSpaces reports whether a script has no spaces between words.
func hasNoSpaces(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
}

// partsIn returns the places of words in a text without spaces, which begins at a place.
func partsIn(text string, from int, wanted []string) (marks [][2]int) {
	for at := range text {
		for _, w := range wanted {
			if !strings.HasPrefix(text[at:], w) {
				continue
			}
			if n := len(marks); n > 0 && marks[n-1][1] >= from+at {
				marks[n-1][1] = max(marks[n-1][1], from+at+len(w))
			} else {
				marks = append(marks, [2]int{from + at, from + at + len(w)})
			}
		}
	}
	return marks
}
