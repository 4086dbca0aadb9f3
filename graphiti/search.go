package graphiti

import (
	"context"
	"fmt"
	"sort"
	"strconv"
	"strings"
	"time"
	"unicode"
)

const (
	maxAsked = 48  // words of a query that are weighed
	maxTerms = 12  // of those, the words that are looked for
	maxHits  = 60  // messages that are looked at for one search
	shownMax = 300 // characters shown of a message

	// bm25 visits every message that holds a word, so words that stand in
	// many messages of a group are left out while rarer ones are there, and
	// all together may stand in mostVisits. A word that is too common even so
	// finds the newest messages with it, in their order.
	common     = 400
	mostVisits = 1200
)

// hit is a message that was found.
type hit struct {
	id      int64
	name    string
	role    RoleType
	speaker string
	content string
	said    time.Time
	score   float64
}

// Search implements Memory. A hit is shown as one line: who said what, when.
func (e *Embedded) Search(ctx context.Context, groups []string, query string, max int) ([]Fact, error) {
	words := wordsOf(query, maxAsked)
	var facts []Fact
	for _, name := range groups {
		g, ok, err := e.group(ctx, name)
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		terms, rare, err := e.terms(ctx, g, words)
		if err != nil {
			return nil, err
		}
		hits, err := e.hits(ctx, g, terms, rare)
		if err != nil {
			return nil, err
		}
		for _, h := range best(hits, max-len(facts)) {
			facts = append(facts, h.fact(name, terms))
		}
	}
	return facts, nil
}

// terms are those of the words that tell most about a group: the ones in the
// fewest messages, rarest first. rare is false when even the rarest is common.
func (e *Embedded) terms(ctx context.Context, group int64, words []string) (terms []string, rare bool, err error) {
	type rated struct {
		word string
		n    int
	}
	var found []rated
	for _, w := range words {
		r := rated{word: w}
		if err := e.db.QueryRow(ctx, "SELECT count(*) FROM (SELECT 1 FROM words WHERE words MATCH ? LIMIT ?)",
			[]any{match(group, w), common + 1}, &r.n); err != nil {
			return nil, false, fmt.Errorf("weigh words: %w", err)
		}
		if r.n > 0 {
			found = append(found, r)
		}
	}
	sort.SliceStable(found, func(i, j int) bool { return found[i].n < found[j].n })
	visits := 0
	for _, r := range found {
		if visits += r.n; len(terms) == maxTerms || len(terms) > 0 && (r.n > common || visits > mostVisits) {
			break
		}
		terms = append(terms, r.word)
	}
	return terms, len(found) > 0 && found[0].n <= common, nil
}

// hits finds the messages of one group that hold any of the terms.
func (e *Embedded) hits(ctx context.Context, group int64, terms []string, rare bool) ([]hit, error) {
	if len(terms) == 0 {
		return nil, nil
	}
	score, order := "bm25(words)", "score"
	if !rare {
		score, order = "-1.0", "rowid DESC"
	}
	rows, err := e.db.Query(ctx, `SELECT m.id, m.name, m.role, m.speaker, m.content, m.said, f.score FROM
		-- CROSS JOIN: the few hits first, not all messages of the group.
		(SELECT rowid AS id, `+score+` AS score FROM words WHERE words MATCH ? ORDER BY `+order+` LIMIT ?) f
		CROSS JOIN messages m ON m.id = f.id AND m.grp = ?`, match(group, terms...), maxHits, group)
	if err != nil {
		return nil, fmt.Errorf("search words: %w", err)
	}
	defer rows.Close()
	var out []hit
	for rows.Next() {
		var h hit
		var said int64
		if err := rows.Scan(&h.id, &h.name, &h.role, &h.speaker, &h.content, &said, &h.score); err != nil {
			return nil, fmt.Errorf("search words: %w", err)
		}
		h.said, h.score = time.UnixMilli(said), -h.score // bm25 is the lower the better
		out = append(out, h)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("search words: %w", err)
	}
	return out, nil
}

// match is FTS5's expression for the messages of a group that hold any of the
// words.
func match(group int64, words ...string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = `"` + indexed(group, []string{w}) + `"`
	}
	return strings.Join(quoted, " OR ")
}

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

// best orders hits by what they are worth: what a person stated above what a
// model answered, and questions, which state nothing, below all. Of one turn
// the answer is not shown beside what it answers.
func best(hits []hit, max int) []hit {
	for i := range hits {
		if isQuestion(hits[i].content) {
			hits[i].score *= 0.2
		}
		if hits[i].role == RoleAssistant {
			hits[i].score *= 0.7
		}
	}
	sort.SliceStable(hits, func(i, j int) bool {
		if hits[i].score != hits[j].score {
			return hits[i].score > hits[j].score
		}
		return hits[i].id > hits[j].id // the newer one
	})
	turns := make(map[string]bool)
	var out []hit
	for _, h := range hits {
		if len(out) >= max {
			break
		}
		turn, _, _ := strings.Cut(strings.TrimPrefix(h.name, "graphiti-proxy.turn."), ".")
		if turns[turn] || isQuestion(h.content) && len(out) > 0 {
			continue
		}
		turns[turn] = true
		out = append(out, h)
	}
	return out
}

func isQuestion(s string) bool {
	s = strings.TrimRightFunc(s, func(r rune) bool { return unicode.IsSpace(r) || r == '"' || r == '\'' })
	return strings.HasSuffix(s, "?") || strings.HasSuffix(s, "？")
}

func (h *hit) fact(group string, terms []string) Fact {
	who := h.speaker
	if who == "" {
		who = string(h.role)
	}
	text := who + " said on " + h.said.UTC().Format(time.DateOnly) + ": " + window(h.content, terms)
	if c, ok := ParseCurated(h.content); ok {
		text = strings.ReplaceAll(c.Kind, "_", " ") + " of " + h.said.UTC().Format(time.DateOnly) + ": " + window(c.Text, terms)
	}
	return Fact{
		UUID:      "embedded-" + strconv.FormatInt(h.id, 10),
		Text:      text,
		Group:     group,
		CreatedAt: h.said,
		ValidAt:   h.said,
		Episode:   h.name,
	}
}

// window is the part of a message around the words that were looked for.
func window(s string, terms []string) string {
	runes := []rune(strings.Join(strings.Fields(s), " "))
	if len(runes) <= shownMax {
		return string(runes)
	}
	lower := strings.ToLower(string(runes))
	at := 0
	for _, t := range terms { // the rarest first
		if i := strings.Index(lower, t); i >= 0 {
			at = len([]rune(lower[:i]))
			break
		}
	}
	from := max(0, min(at-shownMax/3, len(runes)-shownMax))
	out := string(runes[from:min(from+shownMax, len(runes))])
	if from > 0 {
		out = "…" + out
	}
	if from+shownMax < len(runes) {
		out += "…"
	}
	return out
}

// wordsOf returns the first max words of a text, each once, without those that
// say nothing. They hold letters and digits only.
func wordsOf(text string, max int) []string {
	seen := make(map[string]bool)
	var out []string
	for _, w := range strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsNumber(r) && !unicode.IsMark(r)
	}) {
		if len(w) > 64 || len(w) < 2 && w[0] < 0x80 && (w[0] < '0' || w[0] > '9') || stopWords[w] || seen[w] {
			continue
		}
		seen[w] = true
		if out = append(out, w); len(out) == max {
			break
		}
	}
	return out
}

// stopWords say nothing about what is meant: English, German, French, Spanish.
var stopWords = func() map[string]bool {
	m := make(map[string]bool)
	for _, w := range strings.Fields(`
		a about after again all also am an and any are as at be because been before being but by can could did do does
		doing don down for from had has have he her here hers him his how i if in into is it its just know let like me
		more most my no not now of off on once only or other our out over own please said same say she should so some
		such tell than that the their them then there these they this those through to too under until up us very was
		we were what when where which while who whom why will with would you your s t ll re ve
		der die das den dem des ein eine einen einem einer und oder aber ist sind war wie was wer wo wann warum ich du
		er sie es wir ihr mein meine dein deine nicht mit von zu im auf für
		le la les un une des et ou est sont je tu il elle nous vous mon ma mes ton ta quel quelle que qui où comment
		pas avec pour dans sur du de
		el los las una y o es son yo tú él mi mis tu tus qué cuál quién dónde cómo no con por para en del al`) {
		m[w] = true
	}
	return m
}()
