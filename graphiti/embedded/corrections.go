package embedded

import (
	"context"
	"slices"
	"strings"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti/embedded/index"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/strength"
)

const (
	mayBeOld    = 2  // of the best hits, for which a correction is looked for
	wordsOfOld  = 24 // words of one of them that are looked up
	sharedByFew = 4  // messages that may have a word by which a correction is known
	mayCorrect  = 12 // messages that are read
)

// cues are what people say when something has changed, in the languages of
// strength's table: the words of each, by the first of them.
var cues = byFirst(
	"now", "no longer", "any more", "anymore", "any longer", "instead", "actually", "these days", "from now on", "since",
	"renamed", "switched", "replaced", "moved", "changed", "rescheduled", "postponed", "cancelled", "canceled", "called off",
	"sold", "quit", "left", "dropped", "stopped", "ended", "does not", "do not", "doesn't", "don't", "used to", "correction",
	"jetzt", "inzwischen", "mittlerweile", "nicht mehr", "kein", "keine", "ab sofort", "umbenannt", "sondern", "statt", "stattdessen",
	"verschoben", "abgesagt", "storniert", "gekündigt", "verkauft", "gewechselt", "gezogen", "aufgegeben", "doch", "wieder",
	"maintenant", "désormais", "ne plus", "n'est plus", "renommé", "remplacé", "au lieu", "déménagé", "annulé", "reporté", "finalement",
	"changé", "vendu", "quitté", "arrêté",
	"ahora", "ya no", "pasa a", "pasamos a", "en vez", "en lugar", "cambiamos", "cambié", "dejamos", "dejé", "vendí", "se fue",
	"mudamos", "mudó", "mudaron", "canceló", "anulé", "aplazó", "al final",
	"adesso", "non più", "rinominato", "cambiato", "invece", "annullato", "spostato", "rimandato", "venduto", "lasciato", "trasferito",
	"agora", "já não", "não mais", "trocamos", "mudou", "mudei", "cancelado", "adiado", "vendi", "em vez", "deixamos",
	"voortaan", "niet meer", "hernoemd", "verhuisd", "afgezegd", "geannuleerd", "verplaatst", "in plaats",
)

func byFirst(phrases ...string) map[string][][]string {
	m := make(map[string][][]string)
	for _, p := range phrases {
		words := strings.Fields(p)
		m[words[0]] = append(m[words[0]], words)
	}
	return m
}

func betweenCues(r rune) bool {
	switch r {
	case ' ', '\t', '\n', '.', ',', ';', ':', '!', '?', '¿', '¡', '(', ')', '"':
		return true
	}
	return false
}

// corrects reports whether a message says that something has changed.
func corrects(content string) bool {
	if statesNothing(content) {
		return false
	}
	said := strings.FieldsFunc(strings.ToLower(content), betweenCues)
	for i, w := range said {
		if slices.ContainsFunc(cues[w], func(c []string) bool { return i+len(c) <= len(said) && slices.Equal(said[i:i+len(c)], c) }) {
			return true
		}
	}
	return false
}

// correct adds to the hits, of which the best come first, or raises among them
// what was said later of the best ones and says that something has changed: it
// need not have a word of the question. It is known by a word that few messages
// have; in the same talk, by one that no other message has.
func (e *Store) correct(ctx context.Context, g *index.Group, hits []*hit) ([]*hit, error) {
	of := make(map[int64]*hit) // what a message may correct, by its place
	var later []*hit
	for _, old := range hits[:min(len(hits), mayBeOld)] {
		if old.row == nil {
			continue
		}
		for _, w := range index.Words(plain(old.content), wordsOfOld) {
			if strength.Common(w) {
				continue
			}
			have, messages := g.Find(w, sharedByFew)
			if messages > sharedByFew {
				continue
			}
			for _, p := range have {
				if (p > old.place+sameTalk || p > old.place && messages == 2) && of[p] == nil && len(later) < mayCorrect {
					of[p] = old
					later = append(later, hitAt(hits, p))
				}
			}
		}
	}
	if err := e.load(ctx, g.Number(), later); err != nil {
		return nil, err
	}
	for _, l := range later {
		if l.row == nil || !corrects(l.content) {
			continue
		}
		if !slices.Contains(hits, l) {
			hits = append(hits, l)
		}
		old := of[l.place]
		l.score, l.strength = max(l.score, old.score), max(l.strength, old.strength)
	}
	return hits, nil
}

// hitAt is the hit at a place, or a new one.
func hitAt(hits []*hit, place int64) *hit {
	if n := slices.IndexFunc(hits, func(h *hit) bool { return h.place == place }); n >= 0 {
		return hits[n]
	}
	return &hit{place: place}
}
