package service

import (
	"cmp"
	"context"
	"encoding/hex"
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
	"github.com/graphiti-proxy/graphiti-proxy/inject"
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
	Kinds  = []string{"message", KindFact, card.KindRule, graphiti.KindWork}
	States = []string{Valid, Ended, Waiting}

	rolesOf = map[string][]graphiti.RoleType{"person": {graphiti.RoleUser, graphiti.RoleSystem}, "model": {graphiti.RoleAssistant}} // by speaker
)

// SearchRequest is the input of Search.
type SearchRequest struct {
	Selector
	SearchFilter
	Query string `json:"query"`
	All   bool   `json:"all,omitempty" flag:"explain" help:"judge as a chat with this text does, with strengths and keys"`
	Limit int    `json:"limit,omitempty" help:"with a filter: how many"`
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
	Kind         string    `json:"kind,omitempty"` // one of Kinds
	State        string    `json:"state,omitempty"`
	Role         string    `json:"role,omitempty"`
	Client       string    `json:"client,omitempty"`
	Episode      string    `json:"episode,omitempty"`      // of a fact: UUID of its episode in Graphiti
	In           string    `json:"in,omitempty"`           // name of its memory
	Conversation string    `json:"conversation,omitempty"` // hash
	Turn         string    `json:"turn,omitempty"`
	ByMeaning    bool      `json:"by_meaning,omitempty"` // it has no word of the query
	Message      bool      `json:"message,omitempty"`    // its ID is that of a message
	Origin       string    `json:"origin,omitempty"`     // of a fact: said, fact for one of a model, or the kind of a promoted text
	Said         int       `json:"said,omitempty"`       // number of conversations with it, if several
	AtLeast      bool      `json:"at_least,omitempty"`   // Said may lack some: not every copy was read
	Before       []Version `json:"before,omitempty"`     // oldest first
	LastShown    *InTurn   `json:"last_shown,omitempty"` // of a fact, in the newest turns
	Line         *Standing `json:"line,omitempty"`       // of a rule
	Marks        [][2]int  `json:"marks,omitempty"`      // places of the query's words in the text, in bytes

	at     time.Time
	found  int     // words of the query
	rank   int     // by words found; of as many, rules come first, then questions, and then ended texts
	same   string  // equal for copies, or "" for a text that has none
	copies []Found // older ones
	shared bool    // its memory is one of several people, where a change of it needs the IDs of its copies
}

// InTurn is a turn whose block had a fact.
type InTurn struct {
	Time         string `json:"time"`
	Client       string `json:"client,omitempty"`
	Conversation string `json:"conversation,omitempty"` // hash, or "" if the turn is not stored
	Turn         string `json:"turn"`
}

func (f *Found) key() string { return f.Kind + cmp.Or(f.ID, f.Turn) }

// finding collects the results of a search with a filter.
type finding struct {
	sv           *Service
	in           *SearchRequest
	words        []string // of the query
	least        int      // of them in a result
	roles        []graphiti.RoleType
	since, until time.Time
	list         []Found
	rest         int             // results that were not read
	late         bool            // the search by meaning did not end in time
	seen         map[string]bool // by key; a personal statement in a project is in both groups
	said         map[string]int  // index in the list, by the words of copies
}

// finding returns the search of a valid request.
func (sv *Service) finding(in *SearchRequest) (f finding, err error) {
	for _, one := range []struct {
		name, value string
		of          []string
	}{{"speaker", in.Speaker, slices.Sorted(maps.Keys(rolesOf))}, {"kind", in.Kind, Kinds}, {"state", in.State, States}} {
		if one.value != "" && !slices.Contains(one.of, one.value) {
			return f, invalid(fmt.Sprintf("%s: unknown value %q; write one of %s", one.name, one.value, strings.Join(one.of, ", ")))
		}
	}
	if in.All {
		return f, invalid("explain: judges what a chat recalls, which has no filter; remove the filters")
	}
	f = finding{sv: sv, in: in, words: words.Of(sv.o.Pipeline.Redacted(in.Query), maxQuery), seen: make(map[string]bool), said: make(map[string]int)}
	f.roles = rolesOf[in.Speaker]
	if f.least = min(1, len(f.words)); in.Newest {
		f.least = len(f.words)
	}
	var since, until error
	f.since, since = DayOf(in.Since, false, time.UTC)
	f.until, until = DayOf(in.Until, true, time.UTC)
	return f, cmp.Or(since, until, CheckLimit(in.Limit), in.check())
}

// find returns the texts that a filter selects: those with the most words of the query first, then
// the newest, and then those that have its meaning only.
func (sv *Service) find(ctx context.Context, in *SearchRequest) (out Searched, err error) {
	out.Facts = []Found{}
	f, err := sv.finding(in)
	if err != nil {
		return out, err
	}
	places, err := sv.stored(ctx, in)
	if err != nil {
		return out, err
	}
	out.Groups = Meant{Groups: places}.All()
	for _, look := range []func(context.Context, []ledger.Owned) error{f.messages, f.others, f.meant} {
		if err := look(ctx, places); err != nil {
			return out, err
		}
	}
	slices.SortStableFunc(f.list, func(a, b Found) int {
		return cmp.Or(b.rank-a.rank, b.at.Compare(a.at))
	})
	out.All, out.AtMost, out.ByWords = len(f.list)+f.rest, f.rest > 0, f.late
	out.Facts = append(out.Facts, f.list[:min(in.Limit, len(f.list))]...)
	if in.Kind == KindFact {
		err = sv.lastShown(ctx, in, out.Facts)
	}
	for i := range out.Facts {
		one := &out.Facts[i]
		one.excerpt(f.words)
		one.count()
		one.AtLeast = one.Said > 0 && (out.AtMost || one.ByMeaning || in.Client+in.Since+in.Until != "")
	}
	return out, err
}

const (
	maxQuery     = 16  // words of a query to look up
	rowsAtOnce   = 16  // messages to read until a list may be full
	excerptBytes = 600 // length of a text in a result, about
)

// stored returns the groups of a search with a filter, and for a session its parts of groups.
func (sv *Service) stored(ctx context.Context, in *SearchRequest) (places []ledger.Owned, err error) {
	if places, _, err = sv.owned(ctx, in.Selector); in.Session != "" {
		places, err = sv.shownPlaces(ctx, in.Selector)
	}
	return slices.DeleteFunc(places, func(o ledger.Owned) bool {
		return in.unshared && o.Shared || sv.o.State.Generations.Blocks(o.Group)
	}), err
}

// count returns the number of the query's words in a text.
func (f *finding) count(text string) (n int) {
	if len(f.words) == 0 {
		return 0
	}
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
	switch {
	case f.in.Kind != "" && r.Kind != f.in.Kind, r.found < f.least && !r.ByMeaning, f.seen[r.key()],
		f.roles != nil && !slices.Contains(f.roles, graphiti.RoleType(r.Role)),
		f.in.State != "" && r.State != f.in.State,
		!f.since.IsZero() && r.at.Before(f.since), !f.until.IsZero() && !r.at.Before(f.until),
		!strings.Contains(strings.ToLower(r.Client), strings.ToLower(f.in.Client)):
		return
	}
	switch r.rank = 4 * r.found; {
	case len(f.words) == 0 || f.in.Newest:
		r.rank = 0
	case r.State == Ended:
		r.rank -= 2
	case r.Kind == card.KindRule:
		r.rank++
	case words.IsQuestion(r.Text):
		r.rank--
	}
	f.seen[r.key()] = true
	r.Since = dateOf(r.at)
	same := strings.Join([]string{r.Kind, r.State, r.Role, r.same}, "\n")
	at, again := f.said[same]
	if !again || r.same == "" {
		f.said[same], f.list = len(f.list), append(f.list, r)
		return
	}
	first := &f.list[at]
	if r.at.After(first.at) {
		r.copies, first.copies = first.copies, nil
		r, *first = *first, r
	}
	first.copies = append(first.copies, r)
}

// sameWords returns the words that a message and its copies share, or "" of a text without a statement,
// such as "yes", which has no copies.
func sameWords(text string) string {
	if card.ContentWords(text) < card.MinWords {
		return ""
	}
	return words.Key(text)
}

// count counts the conversations of a result, and adds the IDs of copies that a change of it does not
// find.
func (f *Found) count() {
	talks, groups := map[string]bool{f.Conversation: true}, map[string]bool{f.Group: true}
	for _, c := range f.copies {
		if !groups[c.Group] {
			f.In += ", " + c.In
		}
		if !groups[c.Group] || c.shared {
			f.ID += " " + c.ID
		}
		talks[c.Conversation], groups[c.Group] = true, true
	}
	if len(talks) > 1 {
		f.Said = len(talks)
	}
}

// filter selects the messages of the time with the words.
func (f *finding) filter() graphiti.Filter {
	return graphiti.Filter{Since: f.since, Before: f.until, Words: f.words, Newest: f.in.Newest || len(f.words) == 0}
}

// messages adds messages, also held ones.
func (f *finding) messages(ctx context.Context, places []ledger.Owned) error {
	if f.in.Kind != "" && f.in.Kind != "message" && f.in.Kind != graphiti.KindWork {
		return nil
	}
	held, err := f.sv.heldIn(places)
	for i := range held {
		t := &held[i].Turn
		h := Hit{Kind: "message", State: Waiting, Role: string(graphiti.RoleUser), Client: t.Client, at: t.Said, found: f.count(t.User)}
		f.add(Found{ID: heldID(&held[i]), Text: t.User, Hit: h})
	}
	filter := f.filter()
	filter.Client, filter.Roles, filter.Text = strings.ToLower(f.in.Client), f.roles, true
	if f.in.Kind == graphiti.KindWork {
		filter.Roles = []graphiti.RoleType{graphiti.RoleSystem}
	}
	for i := 0; i < len(places) && err == nil && f.in.State != Waiting; i++ {
		err = f.rows(ctx, &places[i], filter)
	}
	return err
}

// rows adds the messages of a group that are in a listing, in a search for facts as statements.
func (f *finding) rows(ctx context.Context, o *ledger.Owned, filter graphiti.Filter) error {
	ended, err := f.sv.o.State.Ended.In(ctx, o.Group)
	if err != nil {
		return err
	}
	if f.in.State == Ended && f.in.Kind != KindFact {
		if filter = (graphiti.Filter{Names: slices.Collect(maps.Keys(ended)), Text: true}); len(ended) == 0 {
			return nil
		}
	}
	read := 0
	for r, err := range f.sv.rows(ctx, ledger.Part{Group: o.Group, Session: o.Session, Owner: o.Owner}, filter) {
		if err != nil {
			return err
		}
		turn, _ := graphiti.TurnOf(r.Name)
		h := Hit{
			Kind: "message", Message: true, State: stateIf(ended[r.Name] == ""), Role: string(r.Role), Client: gjson.Get(r.Source, "client").Str, In: NameOf(*o, f.in.Whose()),
			Conversation: sessionIn(o, &r), Turn: turn, at: r.Said, found: f.count(r.Text), same: sameWords(r.Text), shared: o.Shared,
		}
		switch {
		case f.in.Kind == KindFact:
			h.Kind, h.Origin, h.Role = KindFact, originOf(&r), string(graphiti.RoleUser)
		case graphiti.IsWork(r.Name):
			h.Kind, h.Role = graphiti.KindWork, string(graphiti.RoleAssistant)
		}
		if len(filter.Names) == 0 {
			h.found = max(h.found, f.least) // the index has it
		} else {
			h.ByMeaning = h.found < f.least && f.in.State != Ended
		}
		if h.Kind != KindFact || h.Origin != "" {
			f.add(Found{ID: r.ID.String(), Group: o.Group, Scope: o.Scope, Text: r.Plain(), Hit: h})
		}
		if read++; read%rowsAtOnce == 0 && f.isFull(h.found, r.Said) {
			f.rest += r.Rest
			return nil
		}
	}
	return nil
}

// isFull reports whether the list has no room for a message with as many words that is older.
func (f *finding) isFull(found int, at time.Time) bool {
	better := 0
	for i := range f.list {
		if o := &f.list[i]; (len(f.words) == 0 || f.in.Newest || o.rank >= 4*found) && !o.at.Before(at) {
			better++
		}
	}
	return better > f.in.Limit
}

// others adds facts and rules of the groups. A session has only messages.
func (f *finding) others(ctx context.Context, places []ledger.Owned) error {
	if f.in.Session != "" {
		return nil
	}
	lines, _, err := f.sv.lines(ctx, f.in.Selector)
	if err != nil {
		return err
	}
	changes, err := f.sv.changes(ctx, &Selector{User: f.in.User, Credential: f.in.Credential})
	if err != nil {
		return err
	}
	for i := range places {
		o := &places[i]
		found, err := f.facts(ctx, o, changes)
		if err != nil {
			return err
		}
		for k := range lines {
			if l := &lines[k]; l.Group == o.Group && (l.Kind != card.KindForget || l.State == card.Pending) {
				found = append(found, ruleHit(l))
			}
		}
		for _, one := range found {
			one.Group, one.Scope, one.In, one.found = o.Group, o.Scope, NameOf(*o, f.in.Whose()), f.count(one.Text)
			f.add(one)
		}
	}
	return nil
}

// ruleHit returns a standing line as a result.
func ruleHit(l *card.Line) Found {
	s := standingOf(l)
	h := Hit{Kind: card.KindRule, State: stateIf(l.State == card.Local || l.State == card.Confirmed), Role: string(graphiti.RoleUser), Client: l.Program, Conversation: l.Session, Turn: l.Turn, Line: &s, at: time.Unix(l.At, 0)}
	if l.Personal { // a decision is one for all of them
		h.same = strings.Join([]string{string(l.State), l.Kind, l.Group, strings.ToLower(l.Text)}, "\n")
	}
	if l.State == card.Pending {
		h.State = Waiting
	}
	text := s.Text
	if l.Kind == card.KindForget {
		text = "Forget that " + text
	}
	return Found{ID: l.ID, Text: text, Hit: h}
}

// meantFor bounds the search by meaning: soon after a start, the index of the memory is not built.
const meantFor = 300 * time.Millisecond

// meant adds messages that have the meaning of the query, and none of its words, unless the others fill
// the list.
func (f *finding) meant(ctx context.Context, places []ledger.Owned) error {
	if len(f.words) == 0 || f.in.Newest || f.rest > 0 || len(f.list) >= f.in.Limit || f.in.Kind != "" && f.in.Kind != "message" || f.in.State != "" && f.in.State != Valid {
		return nil
	}
	short, cancel := context.WithTimeout(ctx, meantFor)
	defer cancel()
	for i := range places {
		facts, err := f.sv.o.Memory.Search(short, []string{places[i].Group}, strings.TrimRight(f.sv.o.Pipeline.Redacted(f.in.Query), "?")+"?", f.sv.settings().MaxFacts)
		if f.late = short.Err() != nil && ctx.Err() == nil; f.late {
			return nil
		}
		if err != nil {
			return withRemedy(err)
		}
		names := []string{""}
		for _, found := range facts {
			names = append(names, found.Episode)
		}
		if err := f.rows(ctx, &places[i], graphiti.Filter{Names: names, Text: true}); err != nil {
			return err
		}
	}
	return nil
}

// lastShown adds the latest turns with facts in their blocks.
func (sv *Service) lastShown(ctx context.Context, in *SearchRequest, list []Found) error {
	person := Selector{User: in.User, Credential: in.Credential} // a personal fact is shown in any project
	if person == (Selector{}) && sv.o.Multi {
		person.Group = in.Group
	}
	groups, owner, err := sv.owned(ctx, person)
	if err != nil {
		return err
	}
	all := make(map[string]map[string]*Found) // by group and ID
	for i := range list {
		for _, one := range append(list[i].copies, list[i]) {
			if all[one.Group] == nil {
				all[one.Group] = make(map[string]*Found)
			}
			all[one.Group][one.ID] = &list[i]
		}
	}
	turns := make(map[string][]*InTurn) // by the name of the message
	for group, of := range all {
		if err := sv.o.State.Decisions.Latest(ctx, group, func(key []byte, c inject.Considered, at time.Time) {
			for _, p := range c.Pieces {
				f := of[graphiti.MessageID(cmp.Or(p.Episode, p.UUID))]
				if f == nil || f.LastShown != nil || p.Verdict != inject.Shown || p.Group != group || in.unshared && c.Owner != inject.OwnerID(owner) {
					continue
				}
				f.LastShown = &InTurn{Time: dateOf(at), Turn: hex.EncodeToString(key)}
				name := graphiti.EpisodeName(f.LastShown.Turn, graphiti.RoleUser)
				turns[name] = append(turns[name], f.LastShown)
			}
		}); err != nil {
			return err
		}
	}
	for i := 0; i < len(groups) && len(turns) > 0; i++ {
		for r, err := range sv.rows(ctx, ledger.Part{Group: groups[i].Group}, graphiti.Filter{Names: slices.Collect(maps.Keys(turns))}) {
			if err != nil {
				return err
			}
			for _, t := range turns[r.Name] {
				t.Client, t.Conversation = gjson.Get(r.Source, "client").Str, sessionIn(&groups[i], &r)
			}
		}
	}
	return nil
}

// excerpt cuts the text of a result to one line around the first word of a query, and marks the
// words.
func (f *Found) excerpt(wanted []string) {
	text := strings.Join(strings.Fields(f.Text), " ")
	if f.Marks = marksOf(text, wanted); len(text) > excerptBytes {
		if len(f.Marks) > 0 && f.Marks[0][0] > excerptBytes/4 {
			from := min(f.Marks[0][0]-excerptBytes/4, len(text)-excerptBytes)
			text = "…" + text[from:]
		}
		text = graphiti.OneLine(text, excerptBytes)
		f.Marks = marksOf(text, wanted)
	}
	f.Text = text
}

// marksOf returns the places of words in a text of one line, by their beginnings. They may overlap
// in a script without spaces.
func marksOf(text string, wanted []string) (marks [][2]int) {
	isSign := func(r rune) bool { return !unicode.In(r, unicode.L, unicode.M, unicode.N) }
	for at := 0; at < len(text) && len(wanted) > 0; at++ {
		end := at + strings.IndexByte(text[at:]+" ", ' ')
		from := at + len(text[at:end]) - len(strings.TrimLeftFunc(text[at:end], isSign))
		token := strings.TrimFunc(text[at:end], isSign)
		before := len(marks)
		for i := range token {
			for _, w := range wanted {
				if w[0] >= utf8.RuneSelf && strings.HasPrefix(token[i:], w) {
					marks = append(marks, [2]int{from + i, from + i + len(w)})
				}
			}
		}
		if len(marks) == before && slices.ContainsFunc(words.Of(token, maxQuery), func(w string) bool { return slices.Contains(wanted, w) }) {
			marks = append(marks, [2]int{from, from + len(token)})
		}
		at = end
	}
	return marks
}
