package card

import (
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti/words"
)

// namesProject reports whether a sentence refers to the current project.
func namesProject(s string) bool {
	lower := " " + strings.ToLower(s) + " "
	return slices.ContainsFunc(tongues, func(l tongue) bool {
		return slices.ContainsFunc(strings.Split(l.Here, "|"), func(here string) bool {
			return (l.Forms != nil || strings.Contains(strings.TrimSpace(here), " ")) && strings.Contains(lower, strings.TrimRight(here, " "))
		})
	})
}

// tells reports whether a sentence begins with a function word that begins no mark.
func tells(said []string) bool {
	_, size := markAt(said, 0)
	return size == 0 && isFunction(said[0])
}

// asks reports whether a sentence ends as a question does.
func asks(s string) bool { return strings.HasSuffix(s, "?") || strings.HasSuffix(s, "？") }

// MinWords is the fewest content words of a text that can identify a statement. "The server" is
// about too much.
const MinWords = 2

// ContentWords counts the words of a sentence that carry its meaning. In scripts without
// spaces up to three pairs of characters count as a word.
func ContentWords(s string) int {
	spaced, pairs := 0, 0
	for w := range termsOf(s) {
		switch first, size := utf8.DecodeRuneInString(w); {
		case first < firstUnspaced:
			spaced++
		case size < len(w):
			pairs++
		}
	}
	return spaced + (pairs+2)/3
}

// firstUnspaced is the first letter of the scripts that are read in pairs of characters.
const firstUnspaced = 'ก'

func unspacedIn(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return r >= firstUnspaced })
}

// mark is a phrase of rules.
type mark struct {
	tongues    tongueSet
	forbids    bool
	lasting    bool // it applies from now on
	front      bool // its clause precedes the rule: "every time you add a table, …"
	everywhere bool // it applies in all projects
	anywhere   bool // likewise, if another mark is lasting
	prefers    bool // lasting in a sentence that names the project
	contrasts  bool // it sets a choice against another
}

// marks maps the phrases of the tongues to their marks. unspaced has the phrases in scripts
// without spaces, and markTerms the single words among the others. longest maps the first
// word of phrases to the number of words of the longest one.
var marks, unspaced, markTerms, longest = readMarks()

func readMarks() (marks map[string]mark, unspaced []string, terms map[string]bool, longest map[string]int) {
	marks, terms, longest = make(map[string]mark), make(map[string]bool), make(map[string]int)
	// A "_" is a space. A phrase behind "-" forbids; one behind "=" sets a choice against another, after
	// a comma if it also forbids.
	add := func(list string, m mark) {
		for w := range strings.FieldsSeq(list) {
			m := m
			w, m.contrasts = strings.CutPrefix(w, "=")
			w, m.forbids = strings.CutPrefix(w, "-")
			w = strings.ReplaceAll(w, "_", " ")
			known := marks[w] // in another language
			of, contrasts := known.tongues|m.tongues, known.contrasts || m.contrasts
			if known.lasting || known.forbids && !m.lasting {
				m = known
			}
			m.tongues, m.contrasts = of, contrasts
			marks[w] = m
			first, _, found := strings.Cut(w, " ")
			switch r, _ := utf8.DecodeRuneInString(w); {
			case r >= firstUnspaced:
				unspaced = append(unspaced, w)
				continue
			case !found:
				terms[words.Term(w)] = true
			}
			longest[first] = max(longest[first], strings.Count(w, " ")+1)
		}
	}
	for n := range tongues {
		l, of := &tongues[n], tongueSet(1)<<n
		add(l.Lasting, mark{tongues: of, lasting: true})
		add(l.Front, mark{tongues: of, lasting: true, front: true})
		add(l.Everywhere, mark{tongues: of, lasting: true, everywhere: true})
		add(l.Anywhere, mark{tongues: of, anywhere: true})
		add(l.Prefers, mark{tongues: of, prefers: true})
		add(l.Weak, mark{tongues: of})
	}
	return marks, unspaced, terms, longest
}

// These have the lists of each of tongues: plainRuns the words of Runs that may run the checks of a
// project, and subject the first words of Self.
var (
	verbs     = vocabularies(func(l *tongue) string { return l.Verbs })
	lastVerbs = vocabularies(func(l *tongue) string { return l.Last })
	runs      = vocabularies(func(l *tongue) string { return strings.ReplaceAll(l.Runs, "+", "") })
	checking  = vocabularies(func(l *tongue) string { return l.Checks })
	plainRuns = vocabularies(func(l *tongue) string {
		return strings.Join(slices.DeleteFunc(strings.Fields(l.Runs), func(w string) bool { return w[0] != '+' }), " ")
	})
	denied   = vocabularies(func(l *tongue) string { return l.Denied })
	wanting  = vocabularies(func(l *tongue) string { return l.Wants })
	more     = vocabularies(func(l *tongue) string { return l.More })
	likeness = vocabularies(func(l *tongue) string { return l.As })
	selves   = vocabularies(func(l *tongue) string { return l.Self })
	subject  = vocabularies(func(l *tongue) string { return strings.SplitN(l.Self, " ", 2)[0] })
	telling  = vocabularies(func(l *tongue) string { return l.Tells })
)

// bareOf returns a phrase without the signs around it.
func bareOf(phrase string) string { return strings.Trim(phrase, ".,:;!?()\"") }

// marked is the sum of the marks of a sentence.
type marked struct {
	mark
	rest int // words besides the marks
}

func (s *marked) add(m mark) {
	s.tongues |= m.tongues
	s.forbids, s.lasting = s.forbids || m.forbids, s.lasting || m.lasting
	s.everywhere, s.anywhere, s.prefers = s.everywhere || m.everywhere, s.anywhere || m.anywhere, s.prefers || m.prefers
	s.contrasts = s.contrasts || m.contrasts
}

// saidIn returns the words of a sentence in lower case, with the signs around them.
func saidIn(s string) []string {
	return strings.FieldsFunc(strings.ReplaceAll(strings.ToLower(s), "’", "'"), unicode.IsSpace)
}

// markAt returns the longest mark that begins with word n, and its number of words; 0 without a
// mark.
func markAt(said []string, n int) (m mark, size int) {
	if n == len(said) {
		return m, 0
	}
	for size = min(longest[bareOf(said[n])], len(said)-n); size > 0; size-- {
		// A mark before a comma has no object, and does not forbid: "no, thanks".
		phrase := strings.Join(said[n:n+size], " ")
		if m, is := marks[bareOf(phrase)]; is && (!m.forbids || !strings.HasSuffix(phrase, ",")) {
			return m, size
		}
	}
	return m, 0
}

// marksOf adds up the marks of a sentence, and counts its other words.
func marksOf(s string) (sum marked) {
	lower, said := strings.ToLower(s), saidIn(s)
	for n := 0; n < len(said); n++ {
		if m, size := markAt(said, n); size > 0 {
			m.contrasts = m.contrasts && (!m.forbids || n > 0 && setsApart(said[:n], said[n+size:]))
			sum.add(m)
			n += size - 1
		} else if strings.ContainsFunc(said[n], unicode.IsLetter) {
			sum.rest++
		}
	}
	if unspacedIn(lower) {
		for _, w := range unspaced {
			if strings.Contains(lower, w) {
				sum.add(marks[w])
				sum.rest++ // the marks are not the whole sentence
			}
		}
	}
	return sum
}

// longestOther is the maximum number of words of a choice that another one is set against.
const longestOther = 3

// setsApart reports whether a negation between words sets the next few of them apart: it follows
// a comma, and both sides have a meaning. "Wait, not like that" has not.
func setsApart(before, behind []string) bool {
	if len(before) == 0 || !strings.HasSuffix(before[len(before)-1], ",") {
		return false
	}
	end := 1 + slices.IndexFunc(behind, func(w string) bool { return strings.ContainsAny(w[len(w)-1:], ",.;:!") })
	if end == 0 {
		end = len(behind)
	}
	return end <= longestOther && ContentWords(strings.Join(behind[:end], " ")) > 0 && ContentWords(strings.Join(before, " ")) > 1
}

// Decides reports whether a message states a change or a choice, and neither asks nor requests.
func Decides(said string) bool {
	first, rest, spaced := strings.Cut(strings.TrimSpace(said), " ")
	if !spaced {
		rest = said
	}
	verb := bareOf(strings.ToLower(first))
	asks := words.HasQuestion(said) || verbs.have(verb) || runs.have(verb) || words.Requests(verb) || slices.ContainsFunc(strings.Split(said, ","), words.AsksSomething)
	return !asks && (words.States(said) && words.Changes(rest) || contrasts(said)) // "now its tests" changes nothing
}

// contrasts reports whether a sentence of a text sets a choice against another, such as "Redis, not
// MySQL" and "Redis instead of MySQL". In a request for the current task, it must have a name.
func contrasts(text string) bool {
	for s := range words.Sentences(text) {
		if m := marksOf(s); m.contrasts && m.rest >= minRest && !asks(s) && (words.States(s) || slices.ContainsFunc(strings.Fields(s)[1:], startsUpper)) {
			return true
		}
	}
	return false
}

func startsUpper(w string) bool {
	first, _ := utf8.DecodeRuneInString(w)
	return unicode.IsUpper(first)
}

// vocabulary is a set of words, of patterns such as "x*" and "*x", and of words in scripts without
// spaces. Words behind "!" are not in it.
type vocabulary struct {
	words              map[string]bool
	patterns, unspaced []string
	not                *vocabulary
}

// vocabularyList has a vocabulary for each of tongues.
type vocabularyList []vocabulary

func vocabularies(list func(l *tongue) string) (all vocabularyList) {
	for n := range tongues {
		v := vocabulary{words: make(map[string]bool), not: &vocabulary{words: make(map[string]bool)}}
		for w := range strings.FieldsSeq(list(&tongues[n])) {
			v.add(strings.TrimPrefix(w, "+"))
		}
		all = append(all, v)
	}
	return all
}

// have reports whether one of them has a word. In an unknown language the end of a word shows nothing.
func (all vocabularyList) have(w string) bool {
	return slices.ContainsFunc(all, func(v vocabulary) bool { return v.has(w, false) })
}

// haveIn reports whether the vocabulary of one of some tongues has a word.
func (all vocabularyList) haveIn(w string, of tongueSet) bool {
	for n := range all {
		if of>>n&1 != 0 && all[n].has(w, true) && !all[n].not.has(w, true) {
			return true
		}
	}
	return false
}

// begin reports whether a text in a script without spaces begins with a word of one of them.
func (all vocabularyList) begin(text string) bool {
	return slices.ContainsFunc(all, func(v vocabulary) bool {
		return slices.ContainsFunc(v.unspaced, func(u string) bool { return strings.HasPrefix(text, u) })
	})
}

func (v *vocabulary) add(w string) {
	no, excludes := strings.CutPrefix(w, "!")
	switch r, _ := utf8.DecodeRuneInString(w); {
	case excludes:
		v.not.add(no)
	case r >= firstUnspaced:
		v.unspaced = append(v.unspaced, w)
	case strings.Contains(w, "*"):
		v.patterns = append(v.patterns, w)
	default:
		v.words[w] = true
	}
}

func (v *vocabulary) has(w string, ends bool) bool {
	return v.words[w] || slices.ContainsFunc(v.unspaced, func(u string) bool { return strings.Contains(w, u) }) ||
		slices.ContainsFunc(v.patterns, func(p string) bool {
			is, _ := path.Match(p, w)
			return is && (ends || p[0] != '*')
		})
}
