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
	maxTerms = 12   // words of a query that are looked for
	maxHits  = 60   // messages that are looked at for one search
	shownMax = 300  // characters shown of a message
	common   = 2000 // a word in more messages than this is dropped while rarer ones are left
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
	terms, err := e.terms(ctx, query)
	if err != nil || len(terms) == 0 {
		return nil, err
	}
	var facts []Fact
	for _, g := range groups {
		hits, err := e.hits(ctx, g, terms)
		if err != nil {
			return nil, err
		}
		for _, h := range best(hits, max-len(facts)) {
			facts = append(facts, h.fact(g, terms))
		}
	}
	return facts, nil
}

// terms are the words of the query that tell most: those in the fewest
// messages. A word in very many costs time (bm25 visits each of them) and
// tells little.
func (e *Embedded) terms(ctx context.Context, query string) ([]string, error) {
	words := wordsOf(query)
	if len(words) == 0 {
		return nil, nil
	}
	type rated struct {
		word string
		n    int
	}
	rows := make([]rated, 0, len(words))
	for _, w := range words {
		// The index holds stems. Asking it with the word itself, through a
		// query that counts no further than needed, needs no stemmer here.
		var n int
		if err := e.db.Read().QueryRowContext(ctx,
			"SELECT count(*) FROM (SELECT 1 FROM words WHERE words MATCH ? LIMIT ?)", "content:"+quote(w), common+1).Scan(&n); err != nil {
			return nil, fmt.Errorf("weigh words: %w", err)
		}
		if n > 0 {
			rows = append(rows, rated{w, n})
		}
	}
	sort.SliceStable(rows, func(i, j int) bool { return rows[i].n < rows[j].n })
	var out []string
	for _, r := range rows {
		if len(out) == maxTerms || r.n > common && len(out) > 0 {
			break
		}
		out = append(out, r.word)
	}
	return out, nil
}

// hits finds the messages of one group that hold any of the terms.
func (e *Embedded) hits(ctx context.Context, group string, terms []string) ([]hit, error) {
	quoted := make([]string, len(terms))
	for i, t := range terms {
		quoted[i] = quote(t)
	}
	match := "grp:" + quote(group) + " AND content:(" + strings.Join(quoted, " OR ") + ")"
	rows, err := e.db.Read().QueryContext(ctx, `SELECT m.id, m.name, m.role, m.speaker, m.content, m.said, f.score FROM
		(SELECT rowid AS id, bm25(words, 0, 1) AS score FROM words WHERE words MATCH ? ORDER BY score LIMIT ?) f
		JOIN messages m ON m.id = f.id WHERE m.grp = ? ORDER BY f.score`, match, maxHits, group)
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
	return Fact{
		UUID:      "embedded-" + strconv.FormatInt(h.id, 10),
		Text:      who + " said on " + h.said.UTC().Format(time.DateOnly) + ": " + window(h.content, terms),
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

// wordsOf splits a query into its words, without those that say nothing.
func wordsOf(query string) []string {
	seen := make(map[string]bool)
	var out []string
	for _, w := range strings.FieldsFunc(strings.ToLower(query), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsNumber(r) && !unicode.IsMark(r) && r != '_'
	}) {
		if len(w) > 64 || len(w) < 2 && w[0] < 0x80 && (w[0] < '0' || w[0] > '9') || stopWords[w] || seen[w] {
			continue
		}
		seen[w] = true
		if out = append(out, w); len(out) == 4*maxTerms {
			break
		}
	}
	return out
}

// quote makes one word of any text for FTS5.
func quote(s string) string { return `"` + strings.ReplaceAll(s, `"`, `""`) + `"` }

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
