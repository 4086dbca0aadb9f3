package embedded

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/embedded/index"
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
		hits, terms, err := e.find(ctx, g, words, query)
		if err != nil {
			return nil, err
		}
		for _, h := range best(hits, max-len(facts)) {
			facts = append(facts, h.fact(name, terms))
		}
	}
	return facts, nil
}

// find returns the messages of a group that may be worth showing, with what
// each is worth, and the words that they were found by, rarest first.
func (e *Store) find(ctx context.Context, g *index.Group, words []string, query string) ([]hit, []string, error) {
	number := g.Number()
	if number == 0 {
		return nil, nil, nil
	}
	all := lookUp(g, words)
	question, _, _ := strings.Cut(query, graphiti.Earlier)
	asks := len(index.Words(question, maxAsked))
	for i := asks; i < len(all); i++ {
		all[i].earlier = true
	}
	var near map[int64]float64
	if e.mean != nil && !e.mean.paused.Load() {
		near = e.mean.near(ctx, number, query)
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
	places := withNear(rank(terms, others, maxHits), near)
	hits, err := e.read(ctx, number, places)
	if err != nil {
		return nil, nil, err
	}
	q := &asked{text: query, words: words, named: named, names: names, dates: datesIn(query, time.Now())}
	weigh(hits, terms, q)
	measure(hits, terms, all, q, g.Size(), near)
	blend(hits, near)
	if hits, err = e.correct(ctx, g, number, hits); err != nil {
		return nil, nil, err
	}
	found := make([]string, len(terms))
	for i := range terms {
		found[i] = terms[i].word
	}
	return hits, found, nil
}

// lookUp returns every word that was asked for, those too that the group does
// not have. Of those that are common the newest messages count.
func lookUp(g *index.Group, words []string) []term {
	all, size := make([]term, len(words)), g.Size()
	for i, w := range words {
		places, messages := g.Find(w, common)
		all[i] = term{word: w, places: places, messages: messages, idf: idf(messages, size)}
	}
	return all
}

// read reads the messages at these places.
func (e *Store) read(ctx context.Context, group int64, places []ranked) ([]hit, error) {
	at := make(map[int64]*ranked, len(places))
	var ids strings.Builder
	for i := range places {
		at[places[i].place] = &places[i]
		if i > 0 {
			ids.WriteByte(',')
		}
		ids.WriteString(strconv.FormatInt(group<<placeBits|places[i].place, 10))
	}
	rows, err := e.db.Query(ctx, `SELECT m.id & 4294967295, m.name, m.role, m.speaker, m.content, m.said
		FROM json_each(?) j CROSS JOIN messages m ON m.id = j.value`, "["+ids.String()+"]")
	if err != nil {
		return nil, fmt.Errorf("read messages: %w", err)
	}
	defer rows.Close()
	var out []hit
	for rows.Next() {
		var h hit
		var said int64
		if err := rows.Scan(&h.place, &h.name, &h.role, &h.speaker, &h.content, &said); err != nil {
			return nil, fmt.Errorf("read messages: %w", err)
		}
		h.said, h.ranked = time.UnixMilli(said), at[h.place]
		out = append(out, h)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("read messages: %w", err)
	}
	return out, nil
}

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
	rows, err := e.db.Query(ctx, "SELECT id & 4294967295, speaker, content FROM messages WHERE id > ? AND id <= ? ORDER BY id", first|behind, first|maxPlace)
	if err != nil {
		return 0, fmt.Errorf("read messages: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var m index.Message
		if err := rows.Scan(&m.Place, &m.Speaker, &m.Text); err != nil {
			return 0, fmt.Errorf("read messages: %w", err)
		}
		m.Text = plain(m.Text)
		each(m)
	}
	if err := rows.Err(); err != nil {
		return 0, fmt.Errorf("read messages: %w", err)
	}
	return g, nil
}
