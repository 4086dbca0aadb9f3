package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/inject"
)

// Record is one line of an export.
type Record struct {
	Group string `json:"group,omitempty"` // in an export, if the fields below do not name it

	Scope string `json:"scope,omitempty"`

	// Whose it is, in an export. No user: the owner.
	User      string `json:"user,omitempty"`
	Workspace string `json:"workspace,omitempty"`
	Session   string `json:"session,omitempty"`

	ID      string `json:"id,omitempty"` // by which people name the message, where messages are shown
	Name    string `json:"name"`         // of the message
	Where   string `json:"where"`        // memory, queue, fact, or session: a note on a session whose client may drop its history
	Role    string `json:"role,omitempty"`
	Speaker string `json:"speaker,omitempty"`
	Text    string `json:"text"`
	Time    string `json:"time,omitempty"`
	Ended   string `json:"ended,omitempty"` // since when its person has ended it, where messages are shown
	Source  string `json:"source,omitempty"`
}

// Found is a fact that a search found.
type Found struct {
	Group   string `json:"group"`
	Scope   string `json:"scope"`
	Text    string `json:"text"`
	Verdict string `json:"verdict"` // shown, or why not
	Since   string `json:"since,omitempty"`

	// Strength is how well the fact answers the text, from 0 to 1; nil if the memory
	// does not measure it.
	Strength *float64 `json:"strength,omitempty"`
}

// Shown is what Show found; Groups are the groups that it looked into.
type Shown struct {
	Messages []Record       `json:"messages"`
	Earlier  string         `json:"earlier,omitempty"`  // before which more was said: the next page of a timeline; empty: nothing more is known
	Card     []string       `json:"card,omitempty"`     // what new conversations begin with, the more important first
	Pending  []Standing     `json:"pending,omitempty"`  // lines that wait for confirmation
	Others   []ledger.Owned `json:"others,omitempty"`   // groups of theirs that were not looked into
	Unlisted []string       `json:"unlisted,omitempty"` // groups of which the memory lists nothing, though a search finds something
	Groups   []string       `json:"-"`
}

// Searched is what Search found; Groups are the groups that it searched.
type Searched struct {
	Facts    []Found        `json:"facts"`
	MinScore float64        `json:"min_score"` // strength that one of them must have for any to be shown
	Others   []ledger.Owned `json:"others,omitempty"`
	Groups   []string       `json:"-"`
}

// Threshold compares the strongest fact with recall.min_score, in words.
func (s *Searched) Threshold() string {
	var best *float64
	weak, shown := false, false
	for _, f := range s.Facts {
		weak, shown = weak || f.Verdict == string(inject.Weak), shown || f.Verdict == string(inject.Shown)
		if f.Strength != nil && (best == nil || *f.Strength > *best) {
			best = f.Strength
		}
	}
	says := fmt.Sprintf("recall.min_score is %.2f", s.MinScore)
	switch {
	case len(s.Facts) == 0:
		return says + "; nothing was found"
	case best == nil:
		return says + "; this memory does not measure how strongly a fact answers"
	case shown:
	case weak && *best < s.MinScore:
		return says + fmt.Sprintf("; the strongest fact has %.2f and misses it by %.2f: nothing is shown", *best, s.MinScore-*best)
	case weak:
		return says + "; the text does not say what it is about: nothing is shown"
	}
	return says + fmt.Sprintf("; the strongest fact has %.2f", *best)
}

// maxShown bounds how many messages are shown at once.
const maxShown = 10_000

// CheckLast returns an error unless n is between 1 and maxShown.
func CheckLast(n int) error {
	if n < 1 || n > maxShown {
		return invalid(fmt.Sprintf("last must be 1 to %d", maxShown))
	}
	return nil
}

// Show returns the last n messages of what a selector means, oldest first: of those that
// were said before a time, where one is given (RFC 3339).
func (sv *Service) Show(ctx context.Context, s Selector, n int, before string) (Shown, error) {
	shown := Shown{Messages: []Record{}}
	until, err := momentIn(before)
	if err := cmp.Or(CheckLast(n), s.check(), err); err != nil {
		return shown, err
	}
	err = sv.show(ctx, s, n, until, &shown)
	if err == nil {
		shown.Others = sv.others(ctx, s, shown.Groups)
		shown.Card, err = sv.card(ctx, s)
	}
	if err == nil {
		shown.Pending, err = sv.pending(ctx, s)
	}
	return shown, err
}

func (sv *Service) show(ctx context.Context, s Selector, n int, until time.Time, shown *Shown) error {
	l := timeline{n: n, until: until}
	targets, err := sv.shown(s)
	if err != nil {
		return err
	}
	if s.Session != "" {
		return sv.showSession(ctx, s, &l, shown)
	}
	listed := make(map[string]bool) // what a person says of themselves in a project is in their own memory too
	for _, t := range targets {
		shown.Groups = append(shown.Groups, t.Group)
		episodes, err := sv.episodes(ctx, t.Group, &l)
		unlisted := false
		if err == nil && len(episodes) == 0 {
			unlisted, err = sv.o.Memory.Unlisted(ctx, t.Group)
		}
		if err != nil {
			return withRemedy(err)
		}
		if unlisted {
			shown.Unlisted = append(shown.Unlisted, t.Group)
		}
		for _, e := range episodes {
			for _, said := range e.Sides() {
				if s.Own && listed[said.Name] {
					continue
				}
				listed[said.Name] = said.Name != ""
				l.add(e.ValidAt, Record{Group: t.Group, Scope: string(t.Scope), ID: graphiti.MessageID(said.Name), Name: said.Name, Where: "memory", Role: string(said.Role), Text: said.Text, Source: e.SourceDescription})
			}
		}
		err = sv.o.Pipeline.Waiting(ctx, ledger.Part{Group: t.Group}, func(g graphiti.Message) error {
			if !listed[g.Name] && l.reaches(g.Timestamp) { // else it has arrived meanwhile
				l.add(g.Timestamp, Record{Group: t.Group, Scope: string(t.Scope), ID: graphiti.MessageID(g.Name), Name: g.Name, Where: "queue", Role: string(g.RoleType), Text: g.Content, Source: g.SourceDescription})
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	shown.Messages, shown.Earlier = l.page()
	return sv.markRecords(ctx, shown.Groups, shown.Messages)
}

// showSession shows what was said in a session, in whatever groups.
func (sv *Service) showSession(ctx context.Context, s Selector, l *timeline, shown *Shown) error {
	groups, err := sv.groups(ctx, s)
	if err != nil {
		return err
	}
	parts, err := sv.parts(ctx, s)
	if err != nil {
		return err
	}
	listed := make(map[string]bool) // what a person says of themselves in a project is in their own memory too
	for _, o := range append(groups, parts...) {
		shown.Groups = append(shown.Groups, o.Group)
		err := sv.export(ctx, ledger.Part{Group: o.Group, Session: o.Session, Owner: o.Owner}, func(r Record) error {
			at, failed := time.Parse(time.RFC3339, r.Time)
			if r.Where == "session" || failed != nil || !l.reaches(at) || listed[r.Name] {
				return nil //nolint:nilerr // a record without a time is not shown
			}
			listed[r.Name] = r.Name != ""
			l.add(at, Record{Group: o.Group, Scope: r.Scope, ID: graphiti.MessageID(r.Name), Name: r.Name, Where: r.Where, Role: r.Role, Text: r.Text, Source: r.Source})
			return nil
		})
		var unlisted *graphiti.UnlistedError
		if errors.As(err, &unlisted) {
			shown.Unlisted = append(shown.Unlisted, o.Group)
		} else if err != nil {
			return err
		}
	}
	shown.Messages, shown.Earlier = l.page()
	return nil
}

// Search returns the facts that would be found for a text, best first. With all set it
// also returns those that would not be shown.
func (sv *Service) Search(ctx context.Context, s Selector, query string, all bool) (Searched, error) {
	found := Searched{Facts: []Found{}}
	if strings.TrimSpace(query) == "" {
		return found, invalid("query: is empty; write what to search for")
	}
	if err := s.check(); err != nil {
		return found, err
	}
	err := sv.search(ctx, s, query, all, &found)
	if err == nil {
		found.Others = sv.others(ctx, s, found.Groups)
	}
	return found, err
}

func (sv *Service) search(ctx context.Context, s Selector, query string, all bool, out *Searched) error {
	targets, err := sv.targets(s)
	if err != nil {
		return err
	}
	query = sv.o.Pipeline.Redacted(query)
	if !all && !strings.HasSuffix(query, "?") {
		query += "?" // who searches asks; with all it is explained what a message would get
	}
	var found []inject.Scoped
	for _, t := range sv.Recallable(targets) {
		out.Groups = append(out.Groups, t.Group)
		facts, err := sv.o.Memory.Search(ctx, []string{t.Group}, query, 2*sv.settings().MaxFacts)
		if err != nil {
			return withRemedy(err)
		}
		for i := range facts {
			facts[i].Group = t.Group
		}
		found = append(found, inject.Scoped{Scope: t.Scope, Facts: facts})
	}
	chosen, least := sv.o.Planner.Choose(query, found)
	out.MinScore = least
	for _, c := range chosen {
		if c.Verdict != inject.Shown && !all {
			continue
		}
		f := Found{Group: c.Fact.Group, Scope: string(c.Scope), Text: c.Line, Verdict: string(c.Verdict)}
		if !c.Fact.ValidAt.IsZero() {
			f.Since = c.Fact.ValidAt.UTC().Format(time.RFC3339)
		}
		if c.Fact.Weighed {
			f.Strength = &c.Fact.Strength
		}
		out.Facts = append(out.Facts, f)
	}
	return nil
}
