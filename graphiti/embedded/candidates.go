package embedded

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti/words"
)

const (
	pieceLength = 4   // characters of a piece of a word
	pieceMark   = "~" // begins the piece in the index: no word contains it

	mostPieces      = 24   // pieces of a question to look up
	mostPieceVisits = 2500 // messages with them to visit, the rarest pieces first

	byPieces, byLikeness = 40, 24 // candidates of each kind

	leastPieces = 0.1 // share of the weight of a question's pieces below which they are no shared word
)

// eachPiece calls f for the pieces of a word: its runs of four characters. Forms of one word,
// compounds and misspellings share pieces, in any language. A word without pieces is too short,
// or has digits: then only the whole word means the same.
func eachPiece(w []byte, f func(piece []byte)) {
	n := 0
	var at [maxPieces + pieceLength + 1]int // offsets of characters
	for i := 0; i < len(w) && n < len(at)-1; {
		if w[i] >= '0' && w[i] <= '9' {
			return
		}
		at[n] = i
		_, size := utf8.DecodeRune(w[i:])
		i, n = i+size, n+1
		at[n] = i
	}
	if n < pieceLength {
		return
	}
	var room [1 + 4*pieceLength]byte
	for i := 0; i+pieceLength <= n; i++ {
		f(append(append(room[:0], pieceMark...), w[at[i]:at[i+pieceLength]]...))
	}
}

// maxPieces bounds the pieces of one word.
const maxPieces = 20

// pieces looks up the pieces of the words of a question.
func (g *groupIndex) pieces(asked []string) (all []term) {
	seen := make(map[string]bool)
	size := g.messageCount()
	add := func(s string) {
		if !seen[s] {
			seen[s] = true
			places, messages := g.find(s, common)
			all = append(all, term{word: s, places: places, messages: messages, idf: idf(messages, size)})
		}
	}
	for _, w := range asked {
		n := 0
		eachPiece([]byte(w), func(p []byte) { add(string(p)); n++ })
		if n == 0 {
			add(w)
		}
	}
	slices.SortStableFunc(all, func(a, b term) int { return cmp.Compare(a.messages, b.messages) })
	return all
}

// visited returns the terms to visit messages of: the rarest.
func visited(all []term) []term {
	visits := 0
	for n := range all {
		if visits += len(all[n].places); visits > mostPieceVisits || n == mostPieces {
			return all[:n]
		}
	}
	return all
}

// bestByPieces returns the places with the heaviest pieces, without those of messages that only
// ask: a question is often asked again.
func (g *groupIndex) bestByPieces(terms []term) []scored {
	w := walks.Get().(*walk) //nolint:forcetypeassert // the pool's only type
	defer walks.Put(w)
	w.merge(terms)
	w.sums = w.sums[:0]
	for _, v := range w.visits {
		if n := len(w.sums); n > 0 && w.sums[n-1].place == v.place {
			w.sums[n-1].score += terms[v.of].idf
		} else {
			w.sums = append(w.sums, scored{v.place, terms[v.of].idf})
		}
	}
	w.sums = slices.DeleteFunc(w.sums, func(s scored) bool {
		n, ok := g.note(s.place)
		return !ok || n.Flags&isOnlyAsked != 0
	})
	return slices.Clone(bestOf(w.sums, byPieces, &w.scores))
}

// shareAt returns the weight of the terms that the message at a place has.
func shareAt(terms []term, place int64) (sum float64) {
	for i := range terms {
		if _, ok := slices.BinarySearch(terms[i].places, place); ok {
			sum += terms[i].idf
		}
	}
	return sum
}

// rarestAt returns the weight of the rarest term that the message at a place has.
func rarestAt(terms []term, place int64) (most float64) {
	for i := range terms {
		if _, ok := slices.BinarySearch(terms[i].places, place); ok {
			most = max(most, terms[i].idf)
		}
	}
	return most
}

// mostKeyWords is the most words of a key that is looked up: four Chinese characters are seven, see
// words.Each.
const mostKeyWords = 7

// keyTerm returns the term of a whole key in the index. Function words count: "when" is often a key.
func keyTerm(key string) string { return pieceMark + " " + strings.Join(allWords(key), " ") }

// allWords returns the first words of a text, function words too.
func allWords(text string) (all []string) {
	words.Each(text, func(w []byte, _ words.Significance) bool {
		all = append(all, string(w))
		return len(all) < maxAsked
	})
	return all
}

// keysIn returns the keys of facts that are in a question, with their rarity up to 1 as idf.
func (g *groupIndex) keysIn(question string) (all []term) {
	if !g.hasClaims() {
		return nil
	}
	said, size := allWords(question), g.messageCount()
	seen := make(map[string]bool)
	for i := range said {
		for n := 1; n <= mostKeyWords && i+n <= len(said); n++ {
			w := pieceMark + " " + strings.Join(said[i:i+n], " ")
			if places, messages := g.find(w, common); len(places) > 0 && !seen[w] {
				seen[w] = true
				all = append(all, term{word: w, places: places, messages: messages, idf: idf(messages, size) / idf(1, size)})
			}
		}
	}
	return all
}

// weightOf returns the weight of terms. A word that no message has counts like a rare one.
func weightOf(terms []term) (sum float64) {
	for i := range terms {
		sum += terms[i].idf
	}
	return sum
}

// candidates returns the messages and facts that may answer a question, with their features: the
// hits of its words, and others by pieces of words and by meaning.
func (g *groupIndex) candidates(q *asked, v *groupVectors, hits []*hit, pieces []term) []*hit {
	at := make(map[int64]bool)
	out := slices.Clone(hits)
	for _, h := range out {
		at[h.place] = true
	}
	for _, s := range slices.Concat(g.bestByPieces(visited(pieces)), g.bestByPieces(visited(q.keys)), v.nearest(q.answer, byLikeness)) {
		if note, ok := g.note(s.place); ok && !at[s.place] && !note.isNamed() && !q.repeatedBy(g, s.place, &note) {
			at[s.place] = true
			out = append(out, &hit{place: s.place, note: note, ranked: &ranked{place: s.place}})
		}
	}
	q.terms = pieces
	return out
}
