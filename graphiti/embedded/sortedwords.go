package embedded

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tidwall/btree"
)

// sortedFrom calls f for the words of a set with a beginning, in order, until it returns false.
func sortedFrom(s *btree.Set[string], beginning string, f func(w string) bool) {
	s.Ascend(beginning, func(w string) bool { return strings.HasPrefix(w, beginning) && f(w) })
}

const (
	maxKin = 8 // words to replace a word that the group does not have

	// A word is kin to another when both share this part of their letters from the
	// start, or when one with at least compound letters begins or ends with one with at
	// least held.
	sharedPart = 0.75
	fewestKin  = 4
	compound   = 8
	held       = 4
)

// kin returns words of the group that may be forms of a missing word, compounds with it, or
// parts of it.
func (g *groupIndex) kin(word string) (kin []string) {
	n := utf8.RuneCountInString(word)
	if n < fewestKin || strings.ContainsAny(word, "0123456789") {
		return nil
	}
	g.mu.RLock()
	defer g.mu.RUnlock()
	add := func(w string) bool {
		if w != word && !slices.Contains(kin, w) {
			kin = append(kin, w)
		}
		return len(kin) < maxKin
	}
	// Forms of the word, and words that begin with it.
	letters := []rune(word)
	same := max(fewestKin-1, int(sharedPart*float64(n)+0.5))
	sortedFrom(&g.begins, string(letters[:min(n, same)]), func(w string) bool {
		m := utf8.RuneCountInString(w)
		if float64(sameStart(word, w)) >= sharedPart*float64(max(n, m)) || n >= held && m >= compound && strings.HasPrefix(w, word) {
			return add(w)
		}
		return true
	})
	if n >= held {
		sortedFrom(&g.ends, backwards(word), func(w string) bool {
			if utf8.RuneCountInString(w) >= compound {
				return add(backwards(w))
			}
			return true
		})
	}
	if n >= compound { // words that it begins or ends with
		for k := n - 1; k >= held && len(kin) < maxKin; k-- {
			for _, part := range []string{string(letters[:k]), string(letters[n-k:])} {
				if g.lists[part] != nil {
					add(part)
				}
			}
		}
	}
	return kin
}

// sameStart returns the number of letters that two words share from the start.
func sameStart(a, b string) (n int) {
	x, y := []rune(a), []rune(b)
	for n < len(x) && n < len(y) && x[n] == y[n] {
		n++
	}
	return n
}

func backwards(w string) string {
	r := []rune(w)
	slices.Reverse(r)
	return string(r)
}
