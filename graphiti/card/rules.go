package card

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

const (
	// fewestConversations is in how many conversations a person must have said a rule, and tooOften
	// in how many they say what only looks like one: a rule that the card shows need
	// not be said again.
	fewestConversations, tooOften = 2, 4

	// alike is how like two sentences are that are said again, and say nothing of being
	// a rule.
	alike = 0.8

	// sightingLists is in how many lists sentences are noted that may be said again.
	sightingLists = 32
)

// keepRules notes the rules of a turn where they were said: for the project, and
// beside that for the person, who may say them in another.
func (c Cards) keepRules(ctx context.Context, t *ledger.Turn, to graphiti.Target) (err error) {
	for _, r := range rulesIn(t.User) {
		e := entry{Kind: rule, Text: r.Text, Place: placeOf(t), group: to.Group}
		if !r.Marked {
			err = errors.Join(err, c.keepUnmarked(ctx, t, r, e))
			continue
		}
		err = errors.Join(err, c.add(ctx, t, e))
		if to.Scope == graphiti.ScopeWorkspace && t.Person != "" {
			e.group = t.Person
			err = errors.Join(err, c.add(ctx, t, e))
		}
	}
	return err
}

// groupsOf are the groups with which what is noted of a turn ends.
func groupsOf(t *ledger.Turn) (groups []string) {
	for _, to := range t.Targets {
		if to.Scope == graphiti.ScopeWorkspace {
			groups = append(groups, to.Group)
		}
	}
	return groups
}

// placeOf stands for the project in which a turn took place; empty outside of any.
func placeOf(t *ledger.Turn) string {
	for _, to := range t.Targets {
		if to.Scope == graphiti.ScopeWorkspace {
			return graphiti.SessionHash(to.Group)
		}
	}
	return graphiti.SessionHash(t.Workspace)
}

// sighting is a sentence that may be said again. Its text is not kept.
type sighting struct {
	Words   []uint64 `json:"words"`
	Session string   `json:"session"`
	Place   string   `json:"place,omitempty"`
}

// keepUnmarked notes a sentence that does not say that it is a rule. Said again, what
// is of the person goes into their own memory. All else is a rule then, unless
// they say it over and over, as people do with routine requests: twice in a conversation,
// in several places, or in many conversations.
func (c Cards) keepUnmarked(ctx context.Context, t *ledger.Turn, r personRule, e entry) error {
	before, err := c.again(ctx, t, r, e)
	if err != nil || len(before) == 0 {
		return err
	}
	var in []string
	often := false
	for _, s := range before {
		if !slices.Contains(in, s.Session) {
			in = append(in, s.Session)
		}
		often = often || s.Session == t.OfSession() || s.Place != e.Place
	}
	switch {
	case r.Own:
		if c.Own != nil && t.Person != "" && in[0] != t.OfSession() && len(in) == 1 {
			c.Own([]ledger.Turn{{
				ID: t.ID, Session: t.Session, Owner: t.Owner, Workspace: t.Workspace, User: r.Text, Said: t.Said, Answered: t.Answered,
				Client: "graphiti-proxy", Targets: []graphiti.Target{{Scope: graphiti.ScopeUser, Group: t.Person}}, Generation: t.Generation,
			}})
		}
		return nil
	case often || len(in)+1 >= tooOften:
		return c.takeBack(ctx, t, r, e)
	}
	if len(in)+1 == fewestConversations {
		earlier := e
		earlier.Session = in[0]
		err = c.add(ctx, t, earlier)
	}
	return errors.Join(err, c.add(ctx, t, e))
}

// again notes a sentence, and returns where it was said before.
func (c Cards) again(ctx context.Context, t *ledger.Turn, r personRule, e entry) (before []sighting, err error) {
	group := e.group
	if t.Person != "" { // who says in several projects what they say over and over
		group = t.Person
	}
	now := sighting{r.hashes(), t.OfSession(), e.Place}
	// The smallest is the same in sentences as often as they are alike (MinHash).
	list := "seen:" + group + ":" + strconv.FormatUint(now.Words[0]%sightingLists, 10)
	err = c.Lists.Entries(ctx, func(_ string, body []byte) {
		var s sighting
		if json.Unmarshal(body, &s) == nil && likeness(s.Words, now.Words) >= alike {
			before = append(before, s)
		}
	}, list)
	if err != nil || len(before) > tooOften {
		return before, err
	}
	body, _ := json.Marshal(now) // strings and numbers only
	return before, c.Lists.Add(ctx, list, body, t.Generation, scopes(group, now.Session, t.Owner, groupsOf(t))...)
}

// takeBack notes that what stands on the card as a rule is said over and over.
func (c Cards) takeBack(ctx context.Context, t *ledger.Turn, r personRule, e entry) error {
	found, err := c.read(ctx, []graphiti.Target{{Scope: graphiti.ScopeWorkspace, Group: e.group}})
	if err != nil {
		return err
	}
	if all, _ := said(found); slices.ContainsFunc(all, func(o entry) bool { return o.Kind == rule && ruleOf(o.Text).same(r) }) {
		e.Often = true
		return c.add(ctx, t, e)
	}
	return nil
}

// saying is a rule as it was said once.
type saying struct {
	entry
	words personRule
}

// alikeOf puts together what lays down the same rule: what is the same as the
// shortest, whatever was said first.
func alikeOf(rules []saying) (same [][]saying) {
	slices.SortStableFunc(rules, func(a, b saying) int { return cmp.Compare(a.words.wordCount(), b.words.wordCount()) })
	for _, r := range rules {
		i := slices.IndexFunc(same, func(s []saying) bool { return s[0].words.same(r.words) })
		if i < 0 {
			i, same = len(same), append(same, nil)
		}
		same[i] = append(same[i], r)
	}
	return same
}

// hold reports whether a rule holds for who reads those entries, in its newest words:
// it was said in two conversations, of this project, or outside of projects, or in two
// of them, or it says that it holds in all. It is of the person's then, or of the
// project's.
func hold(said []saying) (newest entry, ok bool) {
	var in, places []string
	own, here, often := false, false, false
	for _, s := range said {
		if s.At >= newest.At { // of the same second the one that tells more
			newest = s.entry
		}
		in, places = append(in, s.Session), append(places, s.Place)
		own, often = own || s.words.Everywhere, often || s.Often
	}
	slices.Sort(in)
	slices.Sort(places)
	own = own || places[0] == "" || len(slices.Compact(places)) > 1
	for _, s := range said {
		project := s.scope == graphiti.ScopeWorkspace
		if here = here || project; project != own {
			newest.group, newest.scope = s.group, s.scope
		}
	}
	return newest, len(slices.Compact(in)) >= fewestConversations && !often && (own || here)
}
