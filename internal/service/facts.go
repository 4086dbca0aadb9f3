package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/words"
)

// FactsRequest is the input of Facts.
type FactsRequest struct {
	Selector
	All   bool `json:"all,omitempty"` // also what is not valid now
	Limit int  `json:"limit,omitempty"`
}

// State says whether something is valid now.
type State string

// The states. A statement is superseded by a later one in the same words, and a fact of
// Graphiti's when that says since when it is not true any more.
const (
	Valid      State = "valid"
	Superseded State = "superseded"
	Expired    State = "expired" // withdrawn by Graphiti
	Later      State = "later"   // valid from a later time on
	Ended      State = "ended"   // by its person, with "forget that …"; memory restore undoes it
)

// Known is one thing that is known: a text that was promoted, what a person said, or a
// distilled fact, or one of Graphiti's.
type Known struct {
	ID    string `json:"id,omitempty"` // of the message
	Group string `json:"group"`
	Scope string `json:"scope"`
	Kind  string `json:"kind"` // one of graphiti.Kinds, said, or fact
	Text  string `json:"text"`
	Since string `json:"since,omitempty"`
	Until string `json:"until,omitempty"`
	State State  `json:"state"`
}

// The kinds of what was not promoted.
const (
	KindSaid = "said"
	KindFact = "fact"
)

// Valids is what is known: promoted texts first, and of each the newest first.
type Valids struct {
	Facts    []Known        `json:"facts"`
	AllFacts int            `json:"all_facts"`          // listed or not
	AtMost   bool           `json:"at_most,omitempty"`  // older messages were counted and not read: some of them may say nothing
	Note     string         `json:"note,omitempty"`     // what cannot be listed
	Others   []ledger.Owned `json:"others,omitempty"`   // groups of theirs that were not looked into
	Unlisted []string       `json:"unlisted,omitempty"` // groups of which the memory lists nothing
	Groups   []string       `json:"-"`
}

// Facts lists what is valid now.
var Facts = Operation[FactsRequest, Valids]{
	Spec:    Spec{Name: "memory/facts", About: "What is known and valid now: promoted texts, what a person said, and Graphiti's facts"},
	Default: FactsRequest{Limit: 50},
	Run: func(ctx context.Context, h *Host, in *FactsRequest) (Valids, error) {
		return h.Memory.Facts(ctx, in.Selector, in.All, in.Limit)
	},
	Audit: func(in *FactsRequest, out *Valids) Entry { return in.audit("list facts", out.Groups) },
	Own: func(ctx context.Context, h *Host, in *FactsRequest, own Selector) error {
		return ownSelector(ctx, h, &in.Selector, own)
	},
}

const (
	// askedBy is how many of a group's newest messages Graphiti's facts are searched
	// by, and foundBy how many facts each finds at most: it has no listing of them.
	askedBy = 12
	foundBy = 20

	maxAskedBy = 300 // bytes of one of those messages
)

// Facts lists what is valid in the groups that a recall for the selector searches.
func (sv *Service) Facts(ctx context.Context, s Selector, all bool, limit int) (v Valids, err error) {
	v.Facts = []Known{}
	if err := cmp.Or(CheckLimit(limit), s.check()); err != nil {
		return v, err
	}
	targets, err := sv.targets(s)
	if err != nil {
		return v, err
	}
	ctx, cancel := context.WithTimeout(ctx, catalogTimeout)
	defer cancel()
	var list []Known
	more := 0
	seen := make(map[string]bool) // what a person says of themselves in a project is in their own memory too
	for _, t := range sv.Recallable(targets) {
		v.Groups = append(v.Groups, t.Group)
		said, unread, err := sv.said(ctx, t, all, limit)
		if err == nil {
			err = sv.markEnded(ctx, t.Group, said)
		}
		var unlisted *graphiti.UnlistedError
		if errors.As(err, &unlisted) {
			v.Unlisted = append(v.Unlisted, t.Group)
		} else if err != nil {
			return v, err
		}
		more += unread
		found, err := sv.factsBy(ctx, t, said)
		if err != nil {
			return v, err
		}
		for _, k := range append(said, found...) {
			if k.ID != "" && seen[k.ID] {
				continue
			}
			seen[k.ID] = true
			list = append(list, k)
		}
	}
	if !all {
		list = slices.DeleteFunc(list, func(k Known) bool { return k.State != Valid })
	}
	slices.SortStableFunc(list, func(a, b Known) int {
		return cmp.Or(cmp.Compare(rankOf(a.Kind), rankOf(b.Kind)), cmp.Compare(b.Since, a.Since))
	})
	if sv.o.Remote {
		v.Note = fmt.Sprintf("Graphiti has no listing of facts: these are what a search finds for each of the %d newest messages of a group; there may be more", askedBy)
	}
	v.AllFacts, v.AtMost = len(list)+more, more > 0
	v.Facts = append(v.Facts, list[:min(limit, len(list))]...)
	v.Others = sv.others(ctx, s, v.Groups)
	return v, nil
}

// markEnded marks the statements of a group that their person ended.
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

// markRecords marks the messages of groups that their person ended.
func (sv *Service) markRecords(ctx context.Context, groups []string, list []Record) error {
	since, err := sv.o.State.Ended.In(ctx, groups...)
	for i := range list {
		list[i].Ended = since[list[i].Name]
	}
	return err
}

// rankOf is the place of a kind in the list.
func rankOf(kind string) int {
	switch kind {
	case KindSaid:
		return 2
	case KindFact:
		return 1
	}
	return 0
}

// said is what people stated in a group, and what they promoted: no questions, no requests,
// and no small talk. What was said again later in the same words is superseded. A memory that
// knows what it holds is asked for the newest only: as many as a list with a limit shows.
// unread counts the others.
func (sv *Service) said(ctx context.Context, t graphiti.Target, all bool, limit int) (list []Known, unread int, err error) {
	if o, ok := sv.o.Memory.Outliner(); ok {
		list, unread, err = newestSaid(ctx, o, t, all, limit)
		if err != nil {
			err = withRemedy(err)
		}
		return list, unread, err
	}
	listed := false
	err = sv.o.Memory.Export(ctx, t.Group, func(e graphiti.Episode) error {
		listed = true
		for _, side := range e.Sides() {
			if k, ok := knownFrom(t, &side, e.ValidAt); ok {
				list = append(list, k)
			}
		}
		return nil
	})
	if err != nil {
		return nil, 0, withRemedy(err)
	}
	if !listed {
		return nil, 0, sv.emptyOrUnlisted(ctx, t.Group)
	}
	slices.SortStableFunc(list, func(a, b Known) int { return cmp.Compare(b.Since, a.Since) })
	again := make(sayings)
	for i := range list {
		again.supersede(&list[i])
	}
	return list, 0, nil
}

// sayings are since when the same is said, by kind and text.
type sayings map[string]string

// supersede marks what is said again later. It is called with the newest first.
func (s sayings) supersede(k *Known) {
	same := k.Kind + "\n" + strings.ToLower(strings.Join(strings.Fields(k.Text), " "))
	if since, again := s[same]; again {
		k.State, k.Until = Superseded, since
		return
	}
	s[same] = k.Since
}

// readAtOnce is how many messages are read at a time until there are enough.
const readAtOnce = 256

// placed is where a message stands in its group, and when it was said, in milliseconds.
type placed struct{ place, said int64 }

// newestSaid is said for a memory that knows what it holds: all that was promoted, and the
// newest of what was said.
func newestSaid(ctx context.Context, o graphiti.Outliner, t graphiti.Target, all bool, limit int) (list []Known, unread int, err error) {
	var promoted, said []placed
	err = o.Outline(ctx, t.Group, func(h *graphiti.Heading) {
		switch at := (placed{h.Place, h.Said.UnixMilli()}); h.Role {
		case graphiti.RoleSystem:
			promoted = append(promoted, at)
		case graphiti.RoleUser:
			said = append(said, at)
		}
	})
	if err != nil {
		return nil, 0, err
	}
	again, wanted := make(sayings), 0
	read := func(of []placed, most int) (rest []placed, err error) {
		slices.SortFunc(of, func(a, b placed) int { return cmp.Or(cmp.Compare(b.said, a.said), cmp.Compare(b.place, a.place)) })
		for rest = of; len(rest) > 0 && (len(rest) == len(of) || wanted < most); {
			n := min(readAtOnce, len(rest))
			known, err := knownAt(ctx, o, t, rest[:n])
			if err != nil {
				return nil, err
			}
			for _, k := range known {
				if again.supersede(&k); all || k.State == Valid {
					wanted++
				}
				list = append(list, k)
			}
			rest = rest[n:]
		}
		return rest, nil
	}
	if _, err := read(promoted, math.MaxInt); err != nil {
		return nil, 0, err
	}
	rest, err := read(said, limit)
	return list, len(rest), err
}

// knownAt reads messages, and returns the newest first what they say.
func knownAt(ctx context.Context, o graphiti.Outliner, t graphiti.Target, some []placed) (list []Known, err error) {
	places := make([]int64, len(some))
	for i := range some {
		places[i] = some[i].place
	}
	episodes, err := o.EpisodesAt(ctx, t.Group, places)
	if err != nil {
		return nil, err
	}
	for _, e := range episodes {
		for _, side := range e.Sides() {
			if k, ok := knownFrom(t, &side, e.ValidAt); ok {
				list = append(list, k)
			}
		}
	}
	slices.SortStableFunc(list, func(a, b Known) int { return cmp.Compare(b.Since, a.Since) })
	return list, nil
}

func knownFrom(t graphiti.Target, side *graphiti.Side, at time.Time) (k Known, ok bool) {
	k = Known{ID: graphiti.MessageID(side.Name), Group: t.Group, Scope: string(t.Scope), Kind: KindSaid, Text: side.Text, Since: dateOf(at), State: Valid}
	if c, curated := graphiti.ParseCurated(side.Text); curated && side.Role == graphiti.RoleSystem {
		k.Kind, k.Text = c.Kind, c.Text
		return k, slices.Contains(graphiti.Kinds, c.Kind)
	}
	return k, side.Role == graphiti.RoleUser && words.States(k.Text)
}

// factsBy is what a model has distilled from messages, or what Graphiti has read from them,
// as far as a search for the newest of them finds it.
func (sv *Service) factsBy(ctx context.Context, t graphiti.Target, said []Known) (list []Known, err error) {
	now := time.Now()
	if d, ok := sv.o.Memory.Distiller(); ok {
		err = d.Distilled(ctx, t.Group, func(d *graphiti.Distilled) error {
			f := graphiti.Fact{ValidAt: d.Since, InvalidAt: d.Until}
			k := Known{Group: t.Group, Scope: string(t.Scope), Kind: KindFact, Text: d.Text, Since: dateOf(d.Since)}
			k.State, k.Until = stateOf(&f, now)
			list = append(list, k)
			return nil
		})
		return list, err
	}
	if !sv.o.Remote {
		return nil, nil
	}
	err = sv.searchBy(ctx, t.Group, said, func(f *graphiti.Fact) {
		k := Known{Group: t.Group, Scope: string(t.Scope), Kind: KindFact, Text: f.Text, Since: dateOf(f.ValidAt)}
		k.State, k.Until = stateOf(f, now)
		list = append(list, k)
	})
	return list, err
}

// searchBy calls f for each fact that a search for the newest messages of a group finds.
func (sv *Service) searchBy(ctx context.Context, group string, said []Known, f func(*graphiti.Fact)) error {
	seen := make(map[string]bool)
	for _, s := range said[:min(askedBy, len(said))] {
		query := strings.ToValidUTF8(s.Text[:min(maxAskedBy, len(s.Text))], "")
		found, err := sv.o.Memory.Search(ctx, []string{group}, query, foundBy)
		if err != nil {
			return withRemedy(err)
		}
		for i := range found {
			if !seen[found[i].UUID] {
				seen[found[i].UUID] = true
				f(&found[i])
			}
		}
	}
	return nil
}

// stateOf says whether a fact is valid, and until when it was.
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

// dateOf is a time as answers have it; empty where it is not known.
func dateOf(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}
