package embedded

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/words"
)

const (
	maxAsked = 48  // words of a query to look up
	maxTerms = 16  // of these, words to rank with
	maxHits  = 120 // messages to consider for one search

	// Each message of a word costs time: of a word in more than common messages, only the
	// newest messages are visited. All words together have at most about mostVisits visits,
	// the rarest words first.
	common     = 300
	mostVisits = 1500
)

// Search implements graphiti.Searcher. A fact is one line: the speaker, the day, and the
// text. The part of the query after graphiti.Earlier counts less.
func (e *Store) Search(ctx context.Context, groups []string, query string, max int) ([]graphiti.Fact, error) {
	if err := e.look(ctx, groups...); err != nil {
		return nil, err
	}
	var facts []graphiti.Fact
	for _, name := range groups {
		g, err := e.index.Get(ctx, name)
		if err != nil {
			return nil, err
		}
		hits, err := e.find(ctx, g, query, max-len(facts))
		if err != nil {
			return nil, err
		}
		facts = append(make([]graphiti.Fact, 0, len(facts)+len(hits)), facts...) // callers store the slice: no spare capacity
		for _, h := range hits {
			facts = append(facts, h.fact(name))
		}
	}
	return facts, nil
}

// find returns at most max messages of a group that are worth showing. It ranks messages by
// the index, and reads only possible results.
func (e *Store) find(ctx context.Context, g *groupIndex, query string, max int) ([]*hit, error) {
	if g.groupNumber() == 0 || max <= 0 {
		return nil, nil
	}
	q := e.askedOf(query)
	hits, err := e.answers(ctx, g, q, max)
	if err != nil {
		return nil, err
	}
	return e.current(ctx, g, hits, q)
}

// answers is find before later statements replace earlier ones.
func (e *Store) answers(ctx context.Context, g *groupIndex, q *asked, max int) ([]*hit, error) {
	var v *groupVectors
	if e.ownModel() {
		v = e.understood(ctx, g, q)
	}
	q.vectors, q.keys = v, g.keysIn(q.text)
	hits, err := e.byWords(ctx, g, q, max)
	if err != nil {
		return nil, err
	}
	// Each call of another model costs: it gets questions that words do not answer.
	if e.mean != nil && !e.mean.own && !e.mean.paused.Load() && q.asks && !slices.ContainsFunc(hits, func(h *hit) bool { return h.strength >= enough }) {
		v = e.understood(ctx, g, q)
	}
	if v != nil {
		if hits, err = e.fitted(ctx, g, v, q, hits, max); err != nil {
			return nil, err
		}
	}
	for _, h := range hits {
		h.meant = h.covers == 0 && shareAt(q.terms, h.place) < leastPieces*weightOf(q.terms)
		if h.note.Flags&isFact != 0 {
			h.meant = !e.isAbout(q, h)
		} else {
			h.meant = h.meant || !q.asks || len(g.factsFrom(h.place)) > 0 || e.isPrivate(q, h) // its facts answer
		}
	}
	if v == nil || !e.mean.own {
		return hits, nil
	}
	own, err := e.ofSelf(ctx, g, v, q)
	own = slices.DeleteFunc(own, func(h *hit) bool { // a fact tells the same
		return slices.ContainsFunc(hits, func(f *hit) bool { return !f.meant && slices.Contains(g.factsFrom(h.place), f.place) })
	})
	own = append(own, slices.DeleteFunc(hits, func(h *hit) bool { return hasPlace(own, h.place) })...)
	return own[:min(len(own), max)], err
}

// askedOf describes a query.
func (e *Store) askedOf(query string) *asked {
	question := firstOf(query)
	q := &asked{text: question, words: words.Of(query, maxAsked), dates: datesIn(query, time.Now()), score: &e.fit.Score, numbers: &e.numbers}
	q.marked = words.Asks(question)
	q.asks = q.marked
	q.personal = words.Personal(question)
	q.form = formOf(question)
	q.sketch = sketchOf(q.words)
	q.own = min(len(words.Of(question, maxAsked)), len(q.words))
	return q
}

// byWords returns the messages that the words of a question find.
func (e *Store) byWords(ctx context.Context, g *groupIndex, q *asked, max int) ([]*hit, error) {
	all := lookUp(g, q.words, q.own)
	terms := chooseTerms(all)
	if len(terms) == 0 {
		return nil, nil
	}
	q.named, q.names = g.speakersNamed(q.words)
	for i := range terms {
		terms[i].name = slices.Contains(q.names, terms[i].word)
	}
	q.terms = terms
	hits, err := e.known(ctx, g, rank(&e.numbers, terms, maxHits), q)
	if err != nil {
		return nil, err
	}
	weigh(&e.numbers, g, hits, terms, q)
	order(hits)
	if hits, err = e.judge(ctx, g, hits, terms, all, q); err != nil {
		return nil, err
	}
	return e.best(ctx, g, q, g.settle(once(hits, q), q), max)
}

// known returns the messages at these places with their notes. It reads a message if its
// note is not enough: it may repeat the question.
func (e *Store) known(ctx context.Context, g *groupIndex, places []ranked, q *asked) ([]*hit, error) {
	all, hits := make([]hit, len(places)), make([]*hit, 0, len(places))
	var unclear []*hit
	for i := range places {
		h := &all[i]
		h.place, h.ranked = places[i].place, &places[i]
		note, indexed := g.note(h.place)
		if !indexed {
			continue
		}
		if h.note = note; mayRepeat(&note, q.sketch) {
			unclear = append(unclear, h)
		}
		hits = append(hits, h)
	}
	if err := e.load(ctx, g.groupNumber(), unclear); err != nil {
		return nil, err
	}
	for _, h := range unclear {
		if r := h.row; r != nil {
			h.repeats = repeats(r.content, q.words)
		}
	}
	return hits, nil
}

// fewOfWord is the number of messages with a word up to which similar words count too: the
// word may occur only in a question.
const fewOfWord = 1

// lookUp returns every word of a query, even if the group does not have it; the first asks
// words are from the current question. If hardly any message has a word, similar words
// count for it too. Of common words only the newest messages count.
func lookUp(g *groupIndex, words []string, asks int) []term {
	all := make([]term, 0, len(words)+4)
	for i, w := range words {
		t := termOf(g, w, common)
		t.earlier = i >= asks
		all = append(all, t)
		if t.messages > fewOfWord {
			continue
		}
		if like := t.like(g); len(like.places) > 0 {
			all = append(all, like)
		}
	}
	return all
}

func termOf(g *groupIndex, w string, most int) term {
	places, messages := g.find(w, most)
	return term{word: w, places: places, messages: messages, light: words.IsLight(w), idf: idf(messages, g.messageCount())}
}

// like returns the words that are similar to a term's, as one term.
func (t *term) like(g *groupIndex) term {
	out := term{word: t.word, light: t.light, earlier: t.earlier, kin: true}
	for _, k := range g.kin(t.word) {
		places, messages := g.find(k, common)
		out.places = append(out.places, places...)
		out.messages += messages
	}
	slices.Sort(out.places)
	out.places = slices.Compact(out.places)
	out.places = out.places[max(0, len(out.places)-common):]
	out.idf = idf(out.messages, g.messageCount())
	return out
}

// maxWarm bounds the groups that Warm indexes.
const maxWarm = 64

// Warm outlines and indexes the groups with the newest messages in the background, so that
// their first listings and searches need not wait.
func (e *Store) Warm(ctx context.Context) error {
	var names []string
	err := e.db.Each(ctx, "SELECT g.name FROM groups g JOIN messages m ON m.id = "+lastOf+" ORDER BY m.said DESC LIMIT ?", []any{maxWarm}, func(scan func(...any) error) error {
		var name string
		err := scan(&name)
		names = append(names, name)
		return err
	})
	if err != nil {
		return fmt.Errorf("list groups: %w", err)
	}
	if err := e.look(ctx, names...); err != nil {
		return err
	}
	e.index.Warm(names, func(ctx context.Context) {
		for _, name := range names {
			if _, _, _, err := e.outline(ctx, name); err != nil { // the next listing reads it again
				return
			}
		}
	})
	return nil
}

// rowToIndex is a row of toIndex.
type rowToIndex struct {
	id, said, until                 int64
	role, speaker, content, sources string
	distilled                       bool
	by                              sql.NullInt64
}

func (r *rowToIndex) columns() []any {
	return []any{&r.id, &r.role, &r.speaker, &r.content, &r.said, &r.distilled, &r.sources, &r.by, &r.until}
}

// message returns the row as input of the index.
func (r *rowToIndex) message() indexedMessage {
	m := indexedAs(r.id&maxPlace, graphiti.RoleType(r.role), r.speaker, r.content, time.UnixMilli(r.said))
	if r.sources != "" {
		m = claimAs(&m, r.content, r.sources, r.by.Int64&maxPlace, r.until)
	} else if r.distilled {
		m.Note.Flags |= isDistilled
	}
	return m
}

// indexed reads the messages for an index.
func (e *Store) indexed(ctx context.Context, group string, behind int64, each func(indexedMessage)) (int64, error) {
	g, ok, err := e.group(ctx, group)
	if err != nil || !ok {
		return 0, err
	}
	first := g << placeBits
	var r rowToIndex
	err = e.db.Each(ctx, toIndex, []any{first | behind, first | maxPlace}, func(scan func(...any) error) error {
		if err := scan(r.columns()...); err != nil {
			return err
		}
		each(r.message())
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("read messages: %w", err)
	}
	return g, nil
}
