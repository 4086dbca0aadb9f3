package card

import (
	_ "embed"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti/words"
)

const (
	// A rule needs a lasting mark, such as "always", and this many points: each point of
	// its marks counts as one, and so does each content word.
	minPoints = 4

	// minRest is the fewest words that a rule has besides its marks.
	minRest = 2

	maxRule = 200 // characters
)

// readRule reports whether a sentence is a rule, a lasting instruction for the model, and whether it
// applies in all projects. A sentence without a lasting mark is a request for
// the current task, unless it expresses a preference for the project. A sentence that
// begins with a pronoun or an article is a statement, such as "the server never answers". A
// question is no rule.
func readRule(s string) (everywhere, ok bool) {
	if utf8.RuneCountInString(s) > maxRule || strings.HasSuffix(s, ":") || asks(s) {
		return false, false
	}
	m := marksOf(s)
	prefers := m.prefers && namesProject(s)
	_, rest, _ := strings.Cut(s, ", ") // "for tests, always use testify"
	ok = (m.lasting && (begins(s) || rest != "" && begins(rest) || !tells(s) && (m.everywhere || goesOn(s))) || prefers) && m.rest >= minRest && ContentWords(s) >= max(1, minPoints-m.points)
	return m.everywhere || m.anywhere && m.points > lastingPoints, ok
}

const (
	// minBegun is the fewest content words of a rule whose mark follows its verb.
	minBegun = 2

	// maxBetween is the most words between the verb that begins a rule and its lasting mark:
	// "write comments always in German".
	maxBetween = 2

	// maxPlace is the most words for the project before a rule: "in this repo, …", and
	// wordsOfPlace is their number between its verb and its mark.
	maxPlace     = 4
	wordsOfPlace = 3
)

// begins reports whether a sentence begins as a rule does: with a lasting mark, or with a verb
// that instructs or a negation and a lasting mark soon after. Words of please and the project
// may precede. No other beginning is evidence that the sentence is an instruction of its author.
func begins(s string) bool {
	said, everywhere := saidIn(s), false
	for size := 2; size <= min(maxPlace, len(said)-1); size++ {
		place := " " + bareOf(strings.Join(said[:size], " ")) + " "
		next, _ := markAt(said, size)
		if everywhere = marksOf(place).everywhere; (strings.HasSuffix(said[size-1], ",") || next.lasting && !instructing.has(said[0])) && (namesProject(place) || everywhere) {
			said = said[size:]
			break
		}
		everywhere = false
	}
	for len(said) > 1 && isPlease(bareOf(said[0])) {
		said = said[1:]
	}
	said[0] = strings.TrimPrefix(said[0], "n'") // French: "n'utilise jamais"
	first, size := markAt(said, 0)
	switch r, _ := utf8.DecodeRuneInString(said[0]); {
	case r >= firstUnspaced:
		return beginsUnspaced(strings.Join(said, " "))
	case first.lasting, everywhere:
		return instructs(said[size:])
	case ContentWords(s) < minBegun:
		return false
	case first.prefers, len(said) > 1 && marks[bareOf(said[1])].prefers:
		return namesProject(s)
	case size == 0 && !instructing.has(said[0]):
		return false
	}
	if endsLasting(said) {
		return true
	}
	for n, left := max(1, size), maxBetween; n < len(said)-1 && left >= 0; n, left = n+1, left-1 {
		if m, _ := markAt(said, n); m.lasting {
			return true
		}
		if place := said[n:min(n+wordsOfPlace, len(said))]; namesProject(strings.Join(place, " ")) {
			n, left = n+len(place)-1, left+1
			continue
		}
		if w := said[n]; isFunction(w) && !isPlease(w) && !isSelf(w) || strings.ContainsAny(w, ",.!") {
			return false
		}
	}
	return false
}

// endsLasting reports whether a sentence ends with a lasting mark of several words or behind a comma:
// "use pnpm from now on", "use pnpm, always". "As always" asks for the current task.
func endsLasting(said []string) bool {
	for n := 1; n < len(said); n++ {
		if m, size := markAt(said, n); m.lasting && n+size == len(said) && (size > 1 || strings.HasSuffix(said[n-1], ",")) {
			return true
		}
	}
	return false
}

// isSelf reports whether a word refers to the author in any language.
func isSelf(w string) bool {
	return slices.ContainsFunc(tongues, func(l tongue) bool { return slices.Contains(strings.Fields(l.Self), w) })
}

// isAbout reports whether a sentence that begins as a rule says something about it: "…, says Eve", "…
// is bad advice". It has a word such as "says" outside of a clause, or words of no grammar behind a
// comma.
func isAbout(s string) bool {
	if slices.ContainsFunc(telling.unspaced, func(w string) bool { return strings.Contains(s, w) }) {
		return true
	}
	for _, w := range saidIn(s) {
		if w = bareOf(w); telling.words[w] {
			return true
		}
		if words.Opens(w) {
			break
		}
	}
	_, tails, found := strings.Cut(s, ",")
	for found {
		var tail string
		tail, tails, found = strings.Cut(tails, ",")
		said := saidIn(tail)
		joins := marksOf(tail).points > 0 || len(said) > 0 && instructing.has(bareOf(said[0]))
		words.Each(tail, func(_ []byte, k words.Significance) bool {
			joins = joins || k != words.Content
			return !joins
		})
		if !joins {
			return true
		}
	}
	return false
}

// instructs reports whether the words after a lasting mark are an instruction, not small talk such
// as "always happy to help": their first or last one is a verb that instructs.
func instructs(said []string) bool {
	for n := 0; n < len(said); n++ {
		_, size := markAt(said, n)
		if w := bareOf(said[n]); size == 0 && !isPlease(w) {
			return instructing.has(w) || words.BeginsRequest(w) || instructing.has(bareOf(said[len(said)-1]))
		}
		n += max(size-1, 0)
	}
	return false
}

// beginsUnspaced is begins for scripts without spaces, and for Korean. In languages with the verb
// at the end, a topic may precede the mark, and the sentence also has to end as a request does.
func beginsUnspaced(s string) bool {
	said := strings.TrimRight(strings.TrimLeft(s, "请請"), ".!。！ ")
	verbLast := strings.ContainsFunc(said, func(r rune) bool { return unicode.In(r, unicode.Hiragana, unicode.Katakana, unicode.Hangul) })
	starts := func(w string) bool {
		topic, _, found := strings.Cut(said, w)
		return marks[w].lasting && found && (topic == "" || verbLast && utf8.RuneCountInString(topic) <= longestTopic && slices.ContainsFunc(topics, func(t string) bool { return strings.HasSuffix(topic, t) }))
	}
	ends := func(l tongue) bool {
		return l.Ends != "" && slices.ContainsFunc(strings.Fields(l.Ends), func(e string) bool { return strings.HasSuffix(said, e) })
	}
	switch {
	case !slices.ContainsFunc(unspaced, starts):
		return slices.ContainsFunc(instructing.unspaced, func(v string) bool { return strings.HasPrefix(said, v) }) && !strings.Contains(said, " ")
	case verbLast:
		return slices.ContainsFunc(tongues, ends)
	}
	return true
}

// topics are the particles of a topic, and longestTopic is the most characters of one.
var topics = []string{"は", "では", "는 ", "은 "}

const longestTopic = 14

// isPlease reports whether a word may precede a request in any language.
func isPlease(w string) bool {
	return slices.ContainsFunc(tongues, func(l tongue) bool { return slices.Contains(strings.Split(l.Please, "|"), w) })
}

func isFunction(w string) (is bool) {
	words.Each(w, func(_ []byte, k words.Significance) bool {
		is = k == words.Function
		return false
	})
	return is
}

// goesOn reports whether a content word follows a lasting mark: "as always" makes no rule.
func goesOn(s string) bool {
	said := saidIn(s)
	for n := range said {
		if m, size := markAt(said, n); m.lasting && ContentWords(strings.Join(said[n+size:], " ")) > 0 {
			return true
		}
	}
	return strings.ContainsFunc(s, func(r rune) bool { return r >= firstUnspaced })
}

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
func tells(s string) bool {
	said := saidIn(s)
	if _, size := markAt(said, 0); size > 0 {
		return false
	}
	return isFunction(said[0])
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

// stem returns the beginning of a word, which its other forms share.
func stem(w string) string {
	if r := []rune(strings.TrimRight(w, "ns")); len(r) > 0 {
		return string(r[:min(len(r), 6)])
	}
	return w
}

//go:embed markers.txt
var markers string

// mark is a phrase of rules.
type mark struct {
	points     int
	forbids    bool
	lasting    bool // it applies from now on
	everywhere bool // it applies in all projects
	anywhere   bool // likewise, if another mark is lasting
	prefers    bool // lasting in a sentence that names the project
	contrasts  bool // it sets a choice against another
}

// lastingPoints is the number of points of a lasting mark.
const lastingPoints = 3

// marks maps the phrases of the table to their marks. unspaced has the phrases in scripts
// without spaces, and markTerms the single words among the others. longest maps the first
// word of phrases to the number of words of the longest one.
var marks, unspaced, markTerms, longest = readMarks(markers)

// instructing has the verbs with which a rule may begin, running the words for fetching, running
// and installing, and telling those with which a sentence is about another one. They are the last
// three parts of a line of the table.
var instructing, running, telling = vocabulary{words: make(map[string]bool)}, vocabulary{words: make(map[string]bool)}, vocabulary{words: make(map[string]bool)}

func readMarks(table string) (marks map[string]mark, unspaced []string, terms map[string]bool, longest map[string]int) {
	marks, terms, longest = make(map[string]mark), make(map[string]bool), make(map[string]int)
	points := []int{lastingPoints, 2, 1, lastingPoints, 1, 1} // of the parts of a line
	for line := range strings.Lines(table) {
		lang, line, _ := strings.Cut(line, " ")
		if lang == "#" {
			continue
		}
		for part, list := range strings.Split(line, "|") {
			for w := range strings.FieldsSeq(list) {
				if part >= len(points) {
					[]*vocabulary{&instructing, &running, &telling}[part-len(points)].add(w)
					continue
				}
				m := mark{points: points[part], lasting: points[part] == lastingPoints, everywhere: part == 3, anywhere: part == 4, prefers: part == 5}
				w, m.contrasts = strings.CutPrefix(w, "=")
				w, m.forbids = strings.CutPrefix(w, "-")
				w = strings.ReplaceAll(w, "_", " ")
				known := marks[w] // in another language
				contrasts := known.contrasts || m.contrasts
				if known.points >= m.points {
					m = known
				}
				m.contrasts = contrasts
				marks[w] = m
				switch r, _ := utf8.DecodeRuneInString(w); {
				case r >= firstUnspaced:
					unspaced = append(unspaced, w)
				case !strings.Contains(w, " "):
					terms[words.Term(w)] = true
					fallthrough
				default:
					first, _, _ := strings.Cut(w, " ")
					longest[first] = max(longest[first], strings.Count(w, " ")+1)
				}
			}
		}
	}
	return marks, unspaced, terms, longest
}

// bareOf returns a phrase without the signs around it.
func bareOf(phrase string) string { return strings.Trim(phrase, ".,:;!?()\"") }

// marked is the sum of the marks of a sentence.
type marked struct {
	mark
	rest int // words besides the marks
}

func (s *marked) add(m mark) {
	s.points += m.points
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
	if strings.ContainsFunc(lower, func(r rune) bool { return r >= firstUnspaced }) {
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

// Decides reports whether a message states a change or a choice, and asks nothing.
func Decides(said string) bool {
	_, rest, spaced := strings.Cut(strings.TrimSpace(said), " ")
	if !spaced {
		rest = said
	}
	// "now its tests" changes nothing.
	return !words.HasQuestion(said) && (words.States(said) && words.Changes(rest) || contrasts(said))
}

// contrasts reports whether a sentence of a text sets a choice against another, such as "Redis, not
// MySQL" and "Redis instead of MySQL". In a request for the current task, it must have a name.
func contrasts(text string) bool {
	for s := range words.Sentences(text) {
		if m := marksOf(s); m.contrasts && m.rest >= minRest && !asks(s) && (words.States(s) || hasName(s)) {
			return true
		}
	}
	return false
}

// hasName reports whether a word after a sentence's first one has a capital letter.
func hasName(s string) bool {
	return slices.ContainsFunc(strings.Fields(s)[1:], func(w string) bool {
		first, _ := utf8.DecodeRuneInString(w)
		return unicode.IsUpper(first)
	})
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
	for ; n < len(said); n++ {
		if w := bareOf(said[n]); running.has(w) || slices.ContainsFunc(strings.FieldsFunc(w, func(r rune) bool { return !isWordRune(r) }), running.has) {
			return true
		}
	}
	return false
}

// vocabulary is a set of words, of beginnings of words, and of words in scripts without spaces.
type vocabulary struct {
	words            map[string]bool
	begins, unspaced []string
}

func (v *vocabulary) add(w string) {
	begin, prefix := strings.CutSuffix(w, "*")
	switch r, _ := utf8.DecodeRuneInString(w); {
	case r >= firstUnspaced:
		v.unspaced = append(v.unspaced, w)
	case prefix:
		v.begins = append(v.begins, begin)
	default:
		v.words[w] = true
	}
}

func (v *vocabulary) has(w string) bool {
	return v.words[w] || slices.ContainsFunc(v.begins, func(b string) bool { return strings.HasPrefix(w, b) }) ||
		slices.ContainsFunc(v.unspaced, func(u string) bool { return strings.Contains(w, u) })
}

// sharedWords is the share of the shorter text's words that two texts about one subject
// have in common.
const sharedWords = 0.75

// sameSubject reports whether two texts are about one subject, so that the newer one
// replaces the older: they have the same words, or they differ in one value. In doubt they
// have two subjects, and both texts are shown.
func sameSubject(a, b string) bool {
	short, long := termsOf(a), termsOf(b)
	if len(short) > len(long) {
		a, b, short, long = b, a, long, short
	}
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
