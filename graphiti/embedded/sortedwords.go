package embedded

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// sorted is a sorted list of words. New words are sorted in when the list is next read.
type sorted struct {
	words  []string
	recent []string // also sorted; few, because each turn brings some, and words may be many
	fresh  []string
}

// maxRecent is the most recent words.
const maxRecent = 512

func (s *sorted) add(w string) { s.fresh = append(s.fresh, w) }

// settle sorts the fresh words.
func (s *sorted) settle() {
	slices.Sort(s.fresh)
	s.recent, s.fresh = merged(s.recent, s.fresh), nil
	if len(s.recent) > maxRecent {
		s.words, s.recent = merged(s.words, s.recent), nil
	}
}

// merged adds sorted words to a sorted list, from the end, in place.
func merged(list, more []string) []string {
	a, b := len(list), len(more)
	list = append(list, more...)
	for at := len(list) - 1; b > 0; at-- {
		if a > 0 && list[a-1] > more[b-1] {
			a--
			list[at] = list[a]
		} else {
			b--
			list[at] = more[b]
		}
	}
	return list
}

// from calls f for the words with a beginning, in order, until it returns false.
func (s *sorted) from(beginning string, f func(w string) bool) {
	old, recent := after(s.words, beginning), after(s.recent, beginning)
	for {
		next := &old
		if len(old) == 0 || len(recent) > 0 && recent[0] < old[0] {
			next = &recent
		}
		if len(*next) == 0 || !strings.HasPrefix((*next)[0], beginning) || !f((*next)[0]) {
			return
		}
		*next = (*next)[1:]
	}
}

// after returns the end of a sorted list of words, without the words before w.
func after(list []string, w string) []string {
	i, _ := slices.BinarySearch(list, w)
	return list[i:]
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
	g.mu.Lock()
	defer g.mu.Unlock()
	g.begins.settle()
	g.ends.settle()
	add := func(w string) bool {
		if w != word && !slices.Contains(kin, w) {
			kin = append(kin, w)
		}
		return len(kin) < maxKin
	}
	// Forms of the word, and words that begin with it.
	letters := []rune(word)
	same := max(fewestKin-1, int(sharedPart*float64(n)+0.5))
	g.begins.from(string(letters[:min(n, same)]), func(w string) bool {
		m := utf8.RuneCountInString(w)
		if float64(sameStart(word, w)) >= sharedPart*float64(max(n, m)) || n >= held && m >= compound && strings.HasPrefix(w, word) {
			return add(w)
		}
		return true
	})
	if n >= held {
		g.ends.from(backwards(word), func(w string) bool {
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
