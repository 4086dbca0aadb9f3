package service

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/inject"
)

// Record is one line of an export.
type Record struct {
	Group string `json:"group,omitempty"` // set in exports if the fields below do not determine it

	Scope string `json:"scope,omitempty"`

	// The owner, in exports. An empty user is the owner of single mode.
	User      string `json:"user,omitempty"`
	Workspace string `json:"workspace,omitempty"`
	Session   string `json:"session,omitempty"`

	ID      string `json:"id,omitempty"` // message ID, in listings
	Name    string `json:"name"`         // message name
	Where   string `json:"where"`        // memory, fact, rule for a line of the card, or session for session notes
	Role    string `json:"role,omitempty"`
	Speaker string `json:"speaker,omitempty"`
	Text    string `json:"text"`
	Time    string `json:"time,omitempty"`
	Ended   string `json:"ended,omitempty"` // time at which the person ended it
	Source  string `json:"source,omitempty"`
	Signed  string `json:"signed,omitempty"` // proof that this installation exported a standing text or an end
}

// Found is a search result.
type Found struct {
	ID      string `json:"id,omitempty"` // of its message or distilled fact; then those of copies in other memories
	Group   string `json:"group"`
	Scope   string `json:"scope"`
	Text    string `json:"text"`
	Verdict string `json:"verdict,omitempty"` // an inject.Verdict
	Since   string `json:"since,omitempty"`

	Keys []string `json:"keys,omitempty"` // keys of a distilled fact, in a listing of all results

	// Strength is the match with the query from 0 to 1, or nil if the memory does not measure it.
	Strength *float64 `json:"strength,omitempty"`

	Hit // of a search with a filter, which has no verdict
}

// Shown is the result of Show.
type Shown struct {
	Messages []Record      `json:"messages"`
	Earlier  string        `json:"earlier,omitempty"` // end of the previous page, or "" if there is none
	Card     []string      `json:"card,omitempty"`    // card of new conversations, by importance
	Pending  []Standing    `json:"pending,omitempty"` // lines that wait for confirmation
	Held     []HeldMessage `json:"held,omitempty"`    // messages that are not stored yet
	Groups   []string      `json:"-"`
}

// Searched is the result of Search.
type Searched struct {
	Facts    []Found  `json:"facts"`
	MinScore float64  `json:"min_score"` // strength that a result needs
	Groups   []string `json:"-"`

	All     int  `json:"all,omitempty"`      // with a filter: all results
	AtMost  bool `json:"at_most,omitempty"`  // unread ones were counted, and some may not be results
	ByWords bool `json:"by_words,omitempty"` // the search by meaning did not end in time
}

// Threshold compares the strongest fact with recall.min_score, in words.
func (s *Searched) Threshold() string {
	says := fmt.Sprintf("recall.min_score is %.2f", s.MinScore)
	best, why := -1.0, ""
	for _, f := range s.Facts {
		if f.Strength != nil && *f.Strength > best {
			best, why = *f.Strength, f.Omitted()
		}
	}
	switch {
	case len(s.Facts) == 0:
		return says + "; no match"
	case best < 0:
		return says + "; this memory does not measure the strength of a match"
	case why == string(inject.Weak) && best >= s.MinScore:
		return says + "; the text contains no question to search for, so no fact is shown"
	}
	return says + fmt.Sprintf("; the strongest fact has %.2f", best)
}

// maxShown bounds the messages of one listing.
const maxShown = 10_000

// Show returns the last messages of a selector, oldest first.
func (sv *Service) Show(ctx context.Context, in *ShowRequest) (Shown, error) {
	s, shown := in.Selector, Shown{Messages: []Record{}}
	until, err := momentIn(in.Before)
	if in.Last < 1 || in.Last > maxShown {
		err = invalid(fmt.Sprintf("last must be 1 to %d", maxShown))
	}
	if err := cmp.Or(err, s.check()); err != nil {
		return shown, err
	}
	err = sv.show(ctx, s, in.Last, until, &shown)
	if err == nil {
		shown.Card, err = sv.card(ctx, s)
	}
	if err == nil {
		shown.Pending, err = sv.Pending(ctx, s)
	}
	return shown, err
}

func (sv *Service) show(ctx context.Context, s Selector, n int, until time.Time, shown *Shown) error {
	places, err := sv.shownPlaces(ctx, s)
	if err != nil {
		return err
	}
	// A session is read as a whole. The latest times mark the last messages, because an import
	// may store older messages later.
	filter := graphiti.Filter{Before: until, Text: true}
	if s.Session == "" {
		filter.Last, filter.Newest = n, true
	}
	var all []moment
	more := false                   // a group has earlier messages that were not read
	listed := make(map[string]bool) // a personal statement in a project is in both groups
	for _, o := range places {
		shown.Groups = append(shown.Groups, o.Group)
		var stored []moment
		rest := 0
		for r, err := range sv.rows(ctx, ledger.Part{Group: o.Group, Session: o.Session, Owner: o.Owner}, filter) {
			if err != nil {
				return err
			}
			rest = r.Rest
			if (s.Own || s.Session != "") && listed[r.Name] {
				continue
			}
			listed[r.Name] = r.Name != ""
			m := moment{r.Said, recordOf(&r)}
			m.Group, m.Scope, m.ID, m.Time = o.Group, o.Scope, r.ID.String(), r.Said.UTC().Format(time.RFC3339)
			stored = append(stored, m)
		}
		if more = more || rest > 0; filter.Newest {
			slices.Reverse(stored)
		}
		all = append(all, stored...)
	}
	held, err := sv.heldIn(places)
	for i := range held {
		shown.Held = append(shown.Held, heldMessage(&held[i]))
	}
	if err != nil {
		return err
	}
	shown.Messages, shown.Earlier = lastPage(all, n, until, more)
	ended, err := sv.o.State.Ended.In(ctx, shown.Groups...)
	for i := range shown.Messages {
		m := &shown.Messages[i]
		m.Ended = ended[m.Name]
	}
	return err
}

// shownPlaces returns the groups to show, or for a session its part of each group: the groups
// of the selector's narrowest scope, and with Own the person's own.
func (sv *Service) shownPlaces(ctx context.Context, s Selector) (places []ledger.Owned, err error) {
	targets, err := sv.targets(s)
	if err != nil {
		return nil, err
	}
	if s.Session == "" {
		for _, t := range targets {
			if s.Group != "" || t.Scope == narrowest(s) {
				places = append(places, ledger.Owned{Group: t.Group, Scope: string(t.Scope)})
			}
		}
		if who, _ := sv.meant(s); s.Own {
			g, _ := sv.namer().Group(graphiti.ScopeUser, who)
			places = append(places, ledger.Owned{Group: g, Scope: string(graphiti.ScopeUser)})
		}
		return places, nil
	}
	r, err := sv.resolve(ctx, s)
	if err != nil {
		return nil, err
	}
	parts, err := r.parts(ctx)
	for _, o := range append(r.groups, parts...) {
		o.Scope = sv.addressed(r.known, o.Group).Scope
		places = append(places, o)
	}
	return places, err
}

// Search returns the best matches of a query, the newest first among equals. Each has the verdict
// of a recall, which a search itself has no use for: it has no bar.
func (sv *Service) Search(ctx context.Context, in *SearchRequest) (out Searched, err error) {
	out.Facts = []Found{}
	if in.SearchFilter != (SearchFilter{}) {
		return sv.find(ctx, in)
	}
	if strings.TrimSpace(in.Query) == "" {
		return out, invalid("query: is empty; write a text to search for")
	}
	if err := in.check(); err != nil {
		return out, err
	}
	targets, err := sv.targets(in.Selector)
	if err != nil {
		return out, err
	}
	query := sv.o.Pipeline.Redacted(in.Query)
	if !in.All && !strings.HasSuffix(query, "?") {
		query += "?" // a query is a question; with All it is a message to explain
	}
	var found []inject.Scoped
	for _, t := range sv.o.State.Generations.Recallable(targets) {
		out.Groups = append(out.Groups, t.Group)
		facts, err := sv.o.Memory.Matches(ctx, t.Group, query, 2*sv.settings().MaxFacts)
		if err != nil {
			return out, withRemedy(err)
		}
		ended, err := sv.o.State.Ended.In(ctx, t.Group)
		if err != nil {
			return out, err
		}
		for i := range facts {
			f := &facts[i]
			f.Group = t.Group
			for _, name := range append([]string{f.UUID, f.Episode}, f.Messages...) {
				if at, ok := ended[name]; ok {
					f.InvalidAt, _ = time.Parse(time.RFC3339, at)
				}
			}
		}
		found = append(found, inject.Scoped{Scope: t.Scope, Facts: facts})
	}
	var keys map[string][]string
	if in.All {
		if keys, err = sv.keysOf(ctx, found); err != nil {
			return out, err
		}
	}
	chosen, least := sv.o.Planner().Choose(query, found)
	out.MinScore = least
	who, _ := sv.meant(in.Selector)
	for _, c := range chosen {
		if c.Scope == graphiti.ScopeUser && who.Workspace != "" && c.Verdict == inject.Shown && !c.Fact.OfUser && !sv.o.Planner().Searches(who, query, c.Fact.Group) {
			c.Verdict = inject.Private
		}
		f := Found{ID: sv.idOf(c.Fact), Group: c.Fact.Group, Scope: string(c.Scope), Text: c.Line, Verdict: string(c.Verdict), Since: dateOf(c.Fact.ValidAt), Keys: keys[c.Fact.UUID]}
		if c.Fact.Weighed {
			f.Strength = &c.Fact.Strength
		}
		out.Facts = append(out.Facts, f)
	}
	slices.SortStableFunc(out.Facts, func(a, b Found) int { return min(1, len(a.Omitted())) - min(1, len(b.Omitted())) })
	return out, nil
}

// Omitted is the reason for which a block would not show a match, or "".
func (f *Found) Omitted() string { return strings.TrimPrefix(f.Verdict, string(inject.Shown)) }

// idOf returns the ID of a search result.
func (sv *Service) idOf(f *graphiti.Fact) string {
	if len(f.Messages) > 0 {
		return graphiti.MessageID(f.UUID)
	}
	return graphiti.MessageID(f.Episode)
}

// moment is a message with its time.
type moment struct {
	at time.Time
	Record
}

// momentIn parses a time. It returns zero for an empty text.
func momentIn(text string) (at time.Time, err error) {
	if text == "" {
		return at, nil
	}
	if at, err = time.Parse(time.RFC3339, text); err != nil {
		return at, invalid(fmt.Sprintf("before: %.60q is not a time; write e.g. 2026-11-25T12:00:00Z", text))
	}
	return at, nil
}

// lastPage returns the last n messages before a time, and the time before which there are more. With
// a time, it also returns those of the first one's moment.
func lastPage(all []moment, n int, until time.Time, more bool) (list []Record, earlier string) {
	slices.SortStableFunc(all, func(a, b moment) int { return a.at.Compare(b.at) })
	from := max(0, len(all)-n)
	for !until.IsZero() && from > 0 && len(all)-from < maxShown && all[from-1].at.Equal(all[from].at) {
		from--
	}
	list = make([]Record, 0, len(all)-from)
	for _, m := range all[from:] {
		list = append(list, m.Record)
	}
	if len(list) == 0 || from == 0 && !more {
		return list, ""
	}
	at := all[from].at
	if until.IsZero() { // more of this moment may exist
		at = at.Add(time.Millisecond)
	}
	return list, momentOf(at)
}
