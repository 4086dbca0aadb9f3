package card

import (
	_ "embed"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

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

// stemsOf returns the stems of all words of a sentence: a part of it may have other function words.
func stemsOf(s string) map[string]bool {
	stems := make(map[string]bool)
	words.Each(s, func(w []byte, _ words.Significance) bool {
		stems[stem(string(w))] = true
		return true
	})
	return stems
}

// termsOf returns the stems of the content words of a sentence, without its marks.
func termsOf(s string) map[string]bool {
	terms := make(map[string]bool)
	words.Each(s, func(w []byte, k words.Significance) bool {
		if k == words.Content && !markTerms[string(w)] {
			terms[stem(string(w))] = true
		}
		return true
	})
	return terms
}

// firstUnspaced is the first letter of the scripts that are read in pairs of characters.
const firstUnspaced = 'ก'

func unspacedIn(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return r >= firstUnspaced })
}

// stem returns the beginning of a word, which its other forms share.
func stem(w string) string {
	if r := []rune(strings.TrimRight(w, "ns")); len(r) > 0 {
		return string(r[:min(len(r), 6)])
	}
	return w
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

// signs matches signs of something to fetch or run: an address, a path, a pipe or another sign of
// a shell, a flag.
var signs = regexp.MustCompile("[|`$&\\\\]|://|(?:^|[\\s'\"(])(?:www\\.|[.~]{0,2}/\\w|-{1,2}[a-zA-Z]|[\\w-]+(?:\\.[\\w-]+)+/)")

// host matches a name with a dot, such as an address without a scheme.
var host = regexp.MustCompile(`[\pL\pN_-]+(?:\.[\pL\pN_-]+)*\.([\pL\pN_-]+)`)

// notHosts are the last parts of the names of files and of technologies, which no host has, and
// the most common one of files that also ends hosts.
var notHosts = strings.Fields("js ts tsx jsx json yaml yml toml txt css html sql env lock go java c h cpp rb php xml csv log md")

// Acts reports whether a text may make a model fetch, run or install something: it has a sign or a
// host of such a text, or a word for it, unless the text begins with its prohibition.
func Acts(text string) bool {
	text = norm.NFKC.String(text)
	if signs.MatchString(text) {
		return true
	}
	for _, m := range host.FindAllStringSubmatch(text, -1) {
		if last := strings.ToLower(m[1]); !strings.ContainsFunc(last, unicode.IsLetter) && strings.Count(m[0], ".") > 2 || strings.ContainsFunc(last, unicode.IsLetter) && !slices.Contains(notHosts, last) {
			return true
		}
	}
	said := saidIn(text)
	n := 0
	if m, size := markAt(said, 0); m.forbids {
		n = size + 1 // "never run terraform apply"
	}
	checks := namesChecks(said)
	for ; n < len(said); n++ {
		for w := range strings.FieldsFuncSeq(said[n], func(r rune) bool { return !isWordRune(r) }) {
			if runs.have(w) && (!checks || !plainRuns.have(w)) {
				return true
			}
		}
	}
	return false
}

// namesChecks reports whether the first thing that is run are the checks of a project, such as "all tests".
func namesChecks(said []string) bool {
	ran, content := false, termsOf(strings.Join(said, " "))
	for _, w := range said {
		w = bareOf(w)
		r, _ := utf8.DecodeRuneInString(w)
		switch ran = ran || plainRuns.have(w); {
		case r >= firstUnspaced && !unicode.Is(unicode.Hangul, r):
			return checking.have(w) && !strings.ContainsFunc(w, func(r rune) bool { return r < firstUnspaced && unicode.IsLetter(r) })
		case checking.have(w):
			return true
		case ran && content[stem(words.Term(w))] && !plainRuns.have(w):
			return false
		}
	}
	return false
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

// sharedWords is the share of the shorter text's words that two texts about one subject
// have in common.
const sharedWords = 0.75

// SameSubject reports whether two texts are about one subject, so that the newer one
// replaces the older: they have the same words, or they differ in one value. In doubt they
// have two subjects, and both texts are shown.
func SameSubject(a, b string) bool { return comparedOf(a).same(comparedOf(b)) }

// compared is a text to compare with others, with the stems of its content words.
type compared struct {
	text  string
	terms map[string]bool
}

func comparedOf(text string) compared { return compared{text, termsOf(text)} }

// same is SameSubject.
func (s compared) same(o compared) bool {
	if len(s.terms) > len(o.terms) {
		s, o = o, s
	}
	a, b, short, long := s.text, o.text, s.terms, o.terms
	if len(short) == 0 || len(long) > 3*len(short) {
		return false
	}
	both := 0
	for w := range short {
		if long[w] {
			both++
		}
	}
	switch {
	case float64(both) >= sharedWords*float64(len(short)):
		return true
	case both == 0 || len(short)-both != 1 || len(long)-both != 1 || marksOf(a).forbids != marksOf(b).forbids:
		return false
	}
	x, y := lastValue(a, long), lastValue(b, short)
	// Two texts that share more than a verb differ in a qualifier: tabs in Go, tabs in C.
	return x == number && y == number || both == 1 && x != noValue && y != noValue
}

// value is the kind of the only word of one text that another text lacks.
type value uint8

const (
	noValue value = iota
	name          // has a capital letter, or ends the text after a function word such as "in"
	number
)

// lastValue returns the kind of the first word of a text that is not among others.
func lastValue(text string, others map[string]bool) value {
	said := strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(`,.;:!"()`, r) })
	for n, w := range said {
		if terms := termsOf(w); len(terms) != 1 || slices.ContainsFunc(slices.Collect(maps.Keys(terms)), func(t string) bool { return others[t] }) {
			continue
		}
		first, _ := utf8.DecodeRuneInString(w)
		switch {
		case strings.ContainsFunc(w, unicode.IsDigit):
			return number
		case n > 0 && (unicode.IsUpper(first) || n == len(said)-1 && ContentWords(said[n-1]) == 0):
			return name
		}
		return noValue
	}
	return noValue
}
