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
	// fewestConversations is in how many conversations a person must have said a rule. What
	// they say in tooOften is a routine request: nobody has to repeat a rule that the
	// card shows.
	fewestConversations, tooOften = 2, 4

	// alike is the likeness from which an unmarked sentence counts as said again.
	alike = 0.8

	// sightingLists is over how many lists the sentences are spread that may be said again.
	sightingLists = 32
)

// keepRules notes the rules of a turn for the project in which they were said, and also
// for the person, who may say them in another.
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

// groupsOf returns the groups whose forgetting deletes what is noted of a turn.
func groupsOf(t *ledger.Turn) (groups []string) {
	for _, to := range t.Targets {
		if to.Scope == graphiti.ScopeWorkspace {
			groups = append(groups, to.Group)
		}
	}
	return groups
}

// placeOf returns a hash of the project in which a turn took place; "" outside of any.
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

// keepUnmarked notes a sentence without the marks of a rule. Said again, a statement about
// the person goes into their own memory, and anything else becomes a rule, unless they
// repeat it like a routine request: twice in a conversation, in several places, or in
// many conversations.
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
	if t.Person != "" { // what a person repeats, they repeat in several projects
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

// takeBack notes that what the card shows as a rule is a routine request.
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

// alikeOf groups the wordings of the same rule: those that are the same as the shortest,
// whichever was said first.
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

// hold returns the newest wording of a rule, and whether the rule holds for the reader of
// those entries: a person said it in two conversations of this project, outside of
// projects, or in two projects, or it says that it holds in all.
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
