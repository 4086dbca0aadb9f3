package embedded

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// claim is a distilled fact in the index.
type claim struct {
	sources []int64 // places of its messages
	ended   ending
}

// ending is the end of a fact. The zero value is none.
type ending struct {
	by int64 // place of the fact that replaced it, or 0
	at time.Time
}

func (c *claim) isOver(now time.Time) bool { return !c.ended.at.IsZero() && !c.ended.at.After(now) }

// needed are the kinds of facts that a request such as "Write the deploy script" often needs.
var needed = []string{"command", "credential_location", "host", "place", "preference", "rule", "version"}

// claimBytes is the size of a claim, and of its places in the maps.
const claimBytes = 192

// indexedFact returns a fact as input of the index: it is found by its text, its subject and
// its keys.
func indexedFact(place int64, f *graphiti.Distilled, sources []int64) indexedMessage {
	n := noteOf(f.Role, "", f.Text, f.Since)
	n.Length = uint32(len(f.Text)) //nolint:gosec // it is short
	n.Flags = n.Flags&isModels | isFact
	if slices.Contains(needed, f.Kind) {
		n.Flags |= isNeeded
	}
	if len(f.Keys) == 0 {
		n.Flags |= isKeyless
	}
	if f.OfUser() {
		n.Flags |= isOfUser
		if f.Kind != "preference" {
			n.Flags = n.Flags&^isNeeded | isWho
		}
	}
	return indexedMessage{Place: place, Text: f.Text + "\n" + f.About + "\n" + strings.Join(f.Keys, "\n"), Note: n, Keys: append(f.Keys[:len(f.Keys):len(f.Keys)], f.About), claim: &claim{sources: sources, ended: ending{at: f.Until}}}
}

// toIndex selects the messages and facts of a group, in the order of their places.
const toIndex = `SELECT id, role, speaker, content, said, distilled, '', NULL, 0 FROM messages WHERE id > ?1 AND id <= ?2
	UNION ALL ` + factsToIndex + ` WHERE f.id > ?1 AND f.id <= ?2 ORDER BY id`

// factsToIndex selects facts with the columns of toIndex.
const factsToIndex = `SELECT f.id, f.role, '', f.text || char(1) || f.kind || char(1) || f.about || char(1) || coalesce((SELECT group_concat(key, char(10)) FROM fact_keys WHERE fact = f.id), ''),
		f.valid_from, 1, (SELECT group_concat(CAST(message & 4294967295 AS TEXT), ',') FROM fact_sources WHERE fact = f.id), f.ended_by, coalesce(f.valid_until, 0)
	FROM facts f`

// claimAs returns a row of toIndex that is a fact as input of the index.
func claimAs(m *indexedMessage, content, sources string, by, until int64) indexedMessage {
	f := graphiti.Distilled{Role: graphiti.RoleUser, Since: startOf(m.Note.Day)}
	f.Text, content, _ = strings.Cut(content, "\x01")
	f.Kind, content, _ = strings.Cut(content, "\x01")
	f.About, content, _ = strings.Cut(content, "\x01")
	f.Keys = lines(content)
	if m.Note.Flags&isModels != 0 {
		f.Role = graphiti.RoleAssistant
	}
	var places []int64
	for s := range strings.SplitSeq(sources, ",") {
		if p, err := strconv.ParseInt(s, 10, 64); err == nil {
			places = append(places, p)
		}
	}
	out := indexedFact(m.Place, &f, places)
	out.claim.ended = ending{by: by, at: timeOf(until)}
	return out
}

// claimLocked adds a claim.
func (g *groupIndex) claimLocked(place int64, c *claim) {
	g.claims[place] = c
	for _, s := range c.sources {
		g.evidence[s] = append(g.evidence[s], place)
	}
	g.bytes += claimBytes
}

// dropClaimsLocked drops the claims before a place.
func (g *groupIndex) dropClaimsLocked(before int64) {
	for p := range g.claims {
		if p < before {
			delete(g.claims, p)
		}
	}
	for s, all := range g.evidence {
		if all = slices.DeleteFunc(all, func(p int64) bool { return p < before }); len(all) == 0 {
			delete(g.evidence, s)
		} else {
			g.evidence[s] = all
		}
	}
	g.bytes += len(g.claims) * claimBytes
}

// Distilled adds facts that were committed to a group, ends others, and marks messages as
// distilled.
func (g *indexes) Distilled(name string, number int64, facts []indexedMessage, ended map[int64]ending, marks []int64) {
	g.mu.Lock()
	e, ok := g.lru.Peek(name)
	whole := ok && e.whole
	g.mu.Unlock()
	if !whole { // the build may have read rows that changed
		g.Deleted(name)
		return
	}
	e.group.change(ended, marks)
	g.Committed(name, number, facts)
}

func (g *groupIndex) change(ended map[int64]ending, marks []int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for p, by := range ended {
		if c := g.claims[p]; c != nil {
			g.claims[p] = &claim{sources: c.sources, ended: by} // a search may be reading c
		}
	}
	for _, p := range marks {
		if i, ok := g.noteAt(p); ok {
			g.notes[i].Flags |= isDistilled
		}
	}
}

// claimOf returns the claim at a place, or nil.
func (g *groupIndex) claimOf(place int64) *claim {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return g.claims[place]
}

// factsFrom returns the places of the facts from a message.
func (g *groupIndex) factsFrom(message int64) []int64 {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return slices.Clone(g.evidence[message])
}

// hasClaims reports whether the group has facts.
func (g *groupIndex) hasClaims() bool {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return len(g.claims) > 0
}

const (
	// exactWords is the strength from which a message is shown in addition to its facts: it
	// shares more words with the question than they do.
	exactWords = 0.9

	// unclaimed is the factor of strength of a distilled message without a fact, which the
	// model did not find worth remembering.
	unclaimed = 0.5

	// factRequest replaces Numbers.Request for facts, and neededFact for facts of needed.
	factRequest = 0.4
	neededFact  = 0.6

	// factScore is the factor of the score of a fact, which has no neighbors to raise it.
	factScore = 1.5
)

// settle replaces ended facts by the facts that ended them, unless the question is about
// the past, and messages by their facts.
func (g *groupIndex) settle(hits []*hit, q *asked) []*hit {
	if !g.hasClaims() {
		return hits
	}
	now := time.Now()
	at := make(map[int64]*hit, len(hits))
	for _, h := range hits {
		at[h.place] = h
	}
	past := q.dates.past(now)
	then := func(h *hit) bool { // it has ended, and was valid at a time that the question names
		c := g.claimOf(h.place)
		return c != nil && c.isOver(now) && q.dates.during(h.note.Day, c.ended.at, now)
	}
	dated := past && slices.ContainsFunc(hits, then)
	out := make([]*hit, 0, len(hits))
	add := func(place int64, like *hit) { // a fact that is at least as good an answer
		h := at[place]
		if h == nil {
			note, ok := g.note(place)
			if !ok {
				return
			}
			h = &hit{place: place, note: note, ranked: &ranked{place: place}}
			at[place] = h
		}
		if !slices.Contains(out, h) {
			out = append(out, h)
		}
		h.score, h.strength = max(h.score, like.score), max(h.strength, like.strength)
	}
	for _, h := range hits {
		if h.note.Flags&isFact == 0 {
			continue
		}
		h.score *= factScore
		valid := g.successor(h.place, now)
		over := valid != h.place
		if over && q.dates.former {
			g.before(h, hits)
		}
		if !over || past && (!dated || then(h)) {
			h.over = over
			add(h.place, h)
		}
		if over && valid != 0 {
			add(valid, h)
		}
	}
	for _, h := range hits {
		if h.note.Flags&isFact == 0 && !g.answered(h, at, now, past, add) {
			out = append(out, h)
		}
	}
	order(out)
	return out
}

// before makes an ended fact as good an answer as the fact of its form that began at its end: a question
// about an earlier state may name the later one.
func (g *groupIndex) before(h *hit, hits []*hit) {
	c := g.claimOf(h.place)
	for _, next := range hits {
		if form := h.note.form; next.place == c.ended.by || next.note.Flags&isFact != 0 && next.note.Day == dayOf(c.ended.at) && form.like(&next.note.form) >= sameForm {
			h.score, h.strength = max(h.score, next.score), max(h.strength, next.strength)
		}
	}
}

// answeredBy returns the strength of a hit with these terms. A fact is short, and its keys
// are chosen to be asked with: a few of the question's words prove more than in a message.
func (q *question) answeredBy(h *hit, own uint32) float64 {
	if h.note.Flags&isFact == 0 || q.whole == 0 {
		return q.of(own)
	}
	sum := q.weightOf(own) + q.given
	return math.Sqrt(min(1, sum/q.whole)) * min(1, sum/q.proof)
}

// answered reports whether facts answer in place of a message.
func (g *groupIndex) answered(h *hit, at map[int64]*hit, now time.Time, past bool, add func(place int64, like *hit)) bool {
	facts := g.factsFrom(h.place)
	if len(facts) == 0 {
		if h.note.Flags&isDistilled != 0 {
			h.strength *= unclaimed
		}
		return false
	}
	best, over := 0.0, 0
	for _, p := range facts {
		if f := at[p]; f != nil {
			best = max(best, f.strength*f.strength) // about the share that a message is rated by
		}
		if c := g.claimOf(p); c != nil && c.isOver(now) {
			over++
		}
	}
	if over == len(facts) && !past {
		for _, p := range facts {
			if valid := g.successor(p, now); valid != 0 {
				add(valid, h)
			}
		}
		return true
	}
	return over > 0 && !past || best > 0 && (h.strength < exactWords || h.strength <= best)
}

// successor returns the place of the valid fact that a fact was replaced by, directly or
// not, or its own; 0 if it has ended without a replacement.
func (g *groupIndex) successor(place int64, now time.Time) int64 {
	for {
		c := g.claimOf(place)
		if c == nil || !c.isOver(now) {
			return place
		}
		if c.ended.by <= place {
			return 0
		}
		place = c.ended.by
	}
}

// told has the further columns of a fact.
type told struct {
	until   time.Time
	sources []string // names of its messages
}

// loadFacts reads the hits that are facts, and returns the others.
func (e *Store) loadFacts(ctx context.Context, group int64, hits []*hit) (rest []*hit, err error) {
	of := make(map[int64]*hit)
	ids := []byte{'['}
	for _, h := range hits {
		switch {
		case h.note.Flags&isFact == 0:
			rest = append(rest, h)
		case h.row == nil:
			if len(of) > 0 {
				ids = append(ids, ',')
			}
			ids = strconv.AppendInt(ids, group<<placeBits|h.place, 10)
			of[h.place] = h
		}
	}
	if len(of) == 0 {
		return rest, nil
	}
	err = e.db.Each(context.WithoutCancel(ctx), `SELECT f.id & 4294967295, f.name, f.role, f.text, f.valid_from, coalesce(f.valid_until, 0),
		coalesce((SELECT group_concat(m.name, char(10)) FROM fact_sources s JOIN messages m ON m.id = s.message WHERE s.fact = f.id), '')
		FROM json_each(?) j CROSS JOIN facts f ON f.id = CAST(j.value AS BIGINT)`, []any{string(append(ids, ']'))}, func(scan func(...any) error) error {
		r, t := &row{}, &told{}
		var place, since, until int64
		var sources string
		if err := scan(&place, &r.name, &r.role, &r.content, &since, &until, &sources); err != nil {
			return err
		}
		r.said, t.until, t.sources = time.UnixMilli(since), timeOf(until), lines(sources)
		r.told = t
		of[place].row = r
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read facts: %w", err)
	}
	return rest, nil
}

// distilled returns a fact as a statement.
func (h *hit) distilled(group string) graphiti.Fact {
	f := graphiti.Fact{
		UUID:      h.name,
		Text:      window(h.content),
		Group:     group,
		CreatedAt: h.said,
		ValidAt:   h.said,
		Messages:  h.told.sources,
		OfUser:    h.note.Flags&isOfUser != 0,
		Strength:  h.strength,
		Weighed:   true,
		Meant:     h.meant,
	}
	if h.over {
		f.InvalidAt, f.Past = h.told.until, true
	}
	return f
}

// Facts returns the distilled facts with these UUIDs, with their keys. It implements the lookup
// of graphiti.Memory.
func (e *Store) Facts(ctx context.Context, group string, uuids []string) (facts []graphiti.Fact, err error) {
	wanted, err := json.Marshal(uuids)
	if err != nil {
		return nil, fmt.Errorf("read facts: %w", err)
	}
	err = e.db.Each(ctx, `SELECT f.name, f.text, f.valid_from, coalesce((SELECT group_concat(key, char(10)) FROM fact_keys WHERE fact = f.id), ''),
		(SELECT max(message) FROM fact_sources WHERE fact = f.id)
		FROM json_each(?) j JOIN groups g ON g.name = ? JOIN facts f ON f.grp = g.id AND f.name = j.value`, []any{string(wanted), group}, func(scan func(...any) error) error {
		f := graphiti.Fact{Group: group}
		var since int64
		var keys, source string
		if err := scan(&f.UUID, &f.Text, &since, &keys, &source); err != nil {
			return err
		}
		f.ValidAt, f.Keys, f.Episodes = timeOf(since), lines(keys), []string{source}
		facts = append(facts, f)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read facts: %w", err)
	}
	return facts, nil
}
