package embedded

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

const (
	maxAsked    = 48  // words of a query that are looked up
	maxTerms    = 16  // of those, the words that are ranked with
	maxHits     = 120 // messages that are read for one search
	maxSpeakers = 50  // of a group whose names are known in a question

	// Reading a word's messages costs time for each of them, so that of a word
	// that stands in more than common only the newest are read, and of all
	// words together no more than mostVisits, the rarest words first.
	common     = 300
	mostVisits = 1500
)

// Search implements graphiti.Searcher. A hit is shown as one line: who, when, what.
func (e *Store) Search(ctx context.Context, groups []string, query string, max int) ([]graphiti.Fact, error) {
	words := wordsOf(query, maxAsked)
	var facts []graphiti.Fact
	for _, name := range groups {
		g, ok, err := e.group(ctx, name)
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
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
func (e *Store) find(ctx context.Context, group int64, words []string, query string) ([]hit, []string, error) {
	size, err := e.size(ctx, group)
	if err != nil {
		return nil, nil, err
	}
	terms, err := e.terms(ctx, group, words, size)
	if err != nil {
		return nil, nil, err
	}
	var near map[int64]float64
	if e.mean != nil && !e.mean.paused.Load() {
		near = e.mean.near(ctx, group, query)
	}
	if len(terms)+len(near) == 0 {
		return nil, nil, nil
	}
	named, err := e.named(ctx, group, words, terms)
	if err != nil {
		return nil, nil, err
	}
	places := withNear(rank(terms, maxHits), near)
	hits, err := e.read(ctx, group, places)
	if err != nil {
		return nil, nil, err
	}
	weigh(hits, terms, &asked{words: words, named: named, dates: datesIn(query)})
	blend(hits, near)
	found := make([]string, len(terms))
	for i := range terms {
		found[i] = terms[i].word
	}
	return hits, found, nil
}

// size is how many messages a group has.
func (e *Store) size(ctx context.Context, group int64) (n int64, err error) {
	if err := e.db.QueryRow(ctx, "SELECT size FROM groups WHERE id = ?", []any{group}, &n); err != nil {
		return 0, fmt.Errorf("count messages: %w", err)
	}
	return n, nil
}

// terms looks the words up. Of those that are common the newest messages count,
// and they only where there is room.
func (e *Store) terms(ctx context.Context, group int64, words []string, size int64) ([]term, error) {
	var all []term
	for _, w := range words {
		var n int
		var list *string
		// One row: reading them one by one takes longer than finding them.
		if err := e.db.QueryRow(ctx, "SELECT count(*), group_concat(rowid & 4294967295, ' ') FROM (SELECT rowid FROM words WHERE words MATCH ? ORDER BY rowid DESC LIMIT ?)",
			[]any{match(group, w), common + 1}, &n, &list); err != nil {
			return nil, fmt.Errorf("look words up: %w", err)
		}
		if n > 0 && list != nil {
			all = append(all, newTerm(w, *list, n, size))
		}
	}
	return chooseTerms(all), nil
}

// named are those of a group's speakers whose name is among the words.
func (e *Store) named(ctx context.Context, group int64, words []string, terms []term) ([]string, error) {
	rows, err := e.db.Query(ctx, "SELECT name FROM speakers WHERE grp = ? LIMIT ?", group, maxSpeakers)
	if err != nil {
		return nil, fmt.Errorf("list speakers: %w", err)
	}
	defer rows.Close()
	var named []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, fmt.Errorf("list speakers: %w", err)
		}
		for _, w := range wordsOf(name, maxTerms) {
			if slices.Contains(words, w) && !slices.Contains(named, name) {
				named = append(named, name)
			}
			for i := range terms {
				terms[i].name = terms[i].name || terms[i].word == w
			}
		}
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("list speakers: %w", err)
	}
	return named, nil
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

// match is FTS5's expression for the messages of a group that hold a word.
func match(group int64, word string) string { return `"` + indexed(group, []string{word}) + `"` }

// indexed is how words of a group stand in the index. Digits and a consonant
// before a word do not change how its end is stemmed.
func indexed(group int64, words []string) string {
	prefix := strconv.FormatInt(group, 10) + "q"
	var b strings.Builder
	for i, w := range words {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(prefix)
		b.WriteString(w)
	}
	return b.String()
}
