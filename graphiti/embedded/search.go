package embedded

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/embedded/index"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/strength"
)

const (
	maxAsked = 48  // words of a query that are looked up
	maxTerms = 16  // of those, the words that are ranked with
	maxHits  = 120 // messages that are read for one search

	// Reading a word's messages costs time for each of them, so that of a word
	// that stands in more than common only the newest are read, and of all
	// words together no more than mostVisits, the rarest words first.
	common     = 300
	mostVisits = 1500
)

// Search implements graphiti.Searcher. A hit is shown as one line: who, when, what.
// What stands in the query behind graphiti.Earlier counts less.
func (e *Store) Search(ctx context.Context, groups []string, query string, max int) ([]graphiti.Fact, error) {
	words := index.Words(query, maxAsked)
	var facts []graphiti.Fact
	for _, name := range groups {
		g, err := e.index.Get(ctx, name)
		if err != nil {
			return nil, err
		}
		hits, terms, err := e.find(ctx, g, words, query, max-len(facts))
		if err != nil {
			return nil, err
		}
		facts = append(make([]graphiti.Fact, 0, len(facts)+len(hits)), facts...) // they are kept: no larger than they are
		for _, h := range hits {
			facts = append(facts, h.fact(name, terms))
		}
	}
	return facts, nil
}

// find returns the messages of a group that are worth showing, at most as many,
// and the words that they were found by, rarest first. Messages are ranked by
// what the index knows of them; those are read that may be shown.
func (e *Store) find(ctx context.Context, g *index.Group, words []string, query string, max int) ([]*hit, []string, error) {
	if g.Number() == 0 || max <= 0 {
		return nil, nil, nil
	}
	all := lookUp(g, words, query)
	question, _, _ := strings.Cut(query, graphiti.Earlier)
	asks := len(index.Words(question, maxAsked))
	for i := asks; i < len(all); i++ {
		all[i].earlier = true
	}
	var near map[int64]float64
	if e.mean != nil && !e.mean.paused.Load() {
		near = e.mean.near(ctx, g.Number(), query)
	}
	terms := chooseTerms(all)
	others := relatedTo(g, words[:asks], mostVisits-visitsOf(terms))
	if len(terms)+len(others)+len(near) == 0 {
		return nil, nil, nil
	}
	named, names := g.Speakers(words)
	for i := range terms {
		terms[i].name = slices.Contains(names, terms[i].word)
	}
	q := &asked{text: query, words: words, sketch: index.SketchOf(words), named: named, names: names, dates: datesIn(query, time.Now())}
	hits, err := e.known(ctx, g, withNear(rank(terms, others, maxHits), near), near, q)
	if err != nil {
		return nil, nil, err
	}
	weigh(g, hits, terms, q)
	measure(hits, terms, all, q, g.Size(), near)
	blend(hits, near)
	if hits, err = e.best(ctx, g, hits, max); err != nil {
		return nil, nil, err
	}
	found := make([]string, len(terms))
	for i := range terms {
		found[i] = terms[i].word
	}
	return hits, found, nil
}

// known are the messages at these places, as far as there are any, with their
// notes. Those are read whose notes do not tell enough: they are near in meaning
// and not in the index, or may repeat the question.
func (e *Store) known(ctx context.Context, g *index.Group, places []ranked, near map[int64]float64, q *asked) ([]*hit, error) {
	all, hits := make([]hit, len(places)), make([]*hit, 0, len(places))
	var unclear []*hit
	for i := range places {
		h := &all[i]
		h.place, h.ranked = places[i].place, &places[i]
		note, indexed := g.Note(h.place)
		if _, isNear := near[h.place]; !indexed && !isNear {
			continue
		}
		if h.note = note; !indexed || mayRepeat(&note, q.sketch) {
			unclear = append(unclear, h)
		}
		hits = append(hits, h)
	}
	if err := e.load(ctx, g.Number(), unclear); err != nil {
		return nil, err
	}
	for _, h := range unclear {
		if r := h.row; r != nil {
			h.repeats = repeats(r.content, q.words)
			if _, indexed := g.Note(h.place); !indexed {
				h.note = noteOf(r.role, r.speaker, r.content, r.said)
			}
		}
	}
	return hits, nil
}

// lookUp returns every word of a query that was asked for, those too that the group does
// not have. Of those that are common the newest messages count.
func lookUp(g *index.Group, words []string, query string) []term {
	all, size := make([]term, len(words)), g.Size()
	for i, w := range words {
		places, messages := g.Find(w, common)
		all[i] = term{word: w, places: places, messages: messages, idf: idf(messages, size), light: strength.Light(w, query)}
	}
	return all
}

// Ready reports whether a group can be searched without indexing it first.
func (e *Store) Ready(group string) bool { return e.index.Built(group) }

// maxWarm bounds the groups that are indexed before anybody asks.
const maxWarm = 64

// Warm begins to index the groups in which something was said last, in the
// background: their first searches need not wait then.
func (e *Store) Warm(ctx context.Context) error {
	rows, err := e.db.Query(ctx, "SELECT name FROM groups WHERE size > 0 ORDER BY said DESC LIMIT ?", maxWarm)
	if err != nil {
		return fmt.Errorf("list groups: %w", err)
	}
	defer rows.Close()
	var names []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return fmt.Errorf("list groups: %w", err)
		}
		names = append(names, name)
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("list groups: %w", err)
	}
	e.index.Warm(names)
	return nil
}

// indexed reads what the index is built from.
func (e *Store) indexed(ctx context.Context, group string, behind int64, each func(index.Message)) (int64, error) {
	g, ok, err := e.group(ctx, group)
	if err != nil || !ok {
		return 0, err
	}
	first := g << placeBits
	rows, err := e.db.Query(ctx, "SELECT id & 4294967295, role, speaker, content, said FROM messages WHERE id > ? AND id <= ? ORDER BY id", first|behind, first|maxPlace)
	if err != nil {
		return 0, fmt.Errorf("read messages: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var place, said int64
		var role, speaker, content string
		if err := rows.Scan(&place, &role, &speaker, &content, &said); err != nil {
			return 0, fmt.Errorf("read messages: %w", err)
		}
		each(indexedAs(place, graphiti.RoleType(role), speaker, content, time.UnixMilli(said)))
	}
	if err := rows.Err(); err != nil {
		return 0, fmt.Errorf("read messages: %w", err)
	}
	return g, nil
}
