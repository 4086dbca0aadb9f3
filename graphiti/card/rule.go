package card

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti/words"
)

const (
	maxRule  = 200 // characters of a rule
	minRest  = 2   // words of a rule besides its marks
	minWish  = 3   // content words of a rule whose mark is a preference for the project
	maxPlace = 4   // words for the project before a rule: "in this repo, …"
	nearMark = 2   // words between an English verb and its mark: "write comments always in German"
	maxTopic = 14  // characters of a topic before the mark of a language without spaces
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
	_, rest, _ := strings.Cut(s, ", ") // "for tests, always use testify"
	begun := begins(s)
	lasting := m.lasting && (begun || rest != "" && begins(rest) || (!tells(s) || afterShould(saidIn(s)) != nil) && (m.everywhere || goesOn(s) || endsLasting(saidIn(s)))) && ContentWords(s) > 0
	wishes := m.prefers && namesProject(s) && ContentWords(s) >= minWish
	return m.everywhere || m.anywhere && m.lasting, (lasting || wishes) && (m.rest >= minRest || begun)
}

// begins reports whether a sentence has the form of a rule, and nothing else. Its first clause begins
// with a lasting mark, or with a verb that instructs and has one soon after. A clause such as "in this
// repo" or "every time you add a table" may precede. Only words of please, other marks, or a clause such as
// "unless I ask" may follow: no other beginning or end is evidence that the sentence is its author's.
func begins(s string) bool {
	clauses := strings.FieldsFunc(strings.ToLower(strings.ReplaceAll(s, "’", "'")), func(r rune) bool { return strings.ContainsRune(",，、", r) })
	led := false
	for ; len(clauses) > 1; clauses = clauses[1:] {
		leads, lasting := leadsIn(clauses[0])
		if !leads {
			break
		}
		led = led || lasting
	}
	if len(clauses) == 0 {
		return false
	}
	marked := led
	for _, tail := range clauses[1:] {
		joins, lasting := joinsRule(tail)
		if !joins {
			return false
		}
		marked = marked || lasting
	}
	return instructs(clauses[0], marked)
}

// leadsIn reports whether a clause may precede a rule, and whether it is a lasting mark.
func leadsIn(clause string) (leads, lasting bool) {
	said := strings.Fields(clause)
	if len(said) == 0 {
		return false, false
	}
	m, size := markAt(said, 0)
	sum := marksOf(clause)
	switch {
	case m.front:
		return true, m.lasting
	case sum.lasting && sum.rest == 0, sum.everywhere && len(said) <= maxPlace+1:
		return true, true
	}
	return size == len(said) || isPlease(strings.TrimSpace(clause)) || len(said) <= maxPlace && namesProject(" "+clause+" ") || words.Opens(said[0]) && !words.AsksSomething(clause), false
}

// joinsRule reports whether a clause may follow a rule, and whether it is a lasting mark.
func joinsRule(clause string) (joins, lasting bool) {
	clause = strings.Trim(clause, " .!。！")
	said, m := strings.Fields(clause), marksOf(clause)
	if len(said) == 0 || m.lasting || m.forbids || m.rest == 0 || isPlease(clause) {
		return true, m.lasting && m.rest == 0
	}
	for n := range min(2, len(said)-1) { // "even if …"
		if words.Opens(said[n]) {
			return !words.AsksSomething(strings.Join(said[n:], " ")), false
		}
	}
	return false, false
}

// instructs reports whether a clause is an instruction with a lasting mark, which may be in another
// clause.
func instructs(clause string, marked bool) bool {
	said := strings.Fields(strings.TrimRight(clause, ".!。！ "))
	for len(said) > 1 && isPlease(said[0]) {
		said = said[1:]
	}
	if len(said) == 0 {
		return false
	}
	if r, _ := utf8.DecodeRuneInString(said[0]); r >= firstUnspaced {
		return beginsUnspaced(strings.Join(said, " "), marked)
	}
	if rest := afterShould(said); rest != nil {
		m, _ := markAt(rest, 0)
		return m.lasting
	}
	said[0] = strings.TrimPrefix(said[0], "n'")                 // French: "n'utilise jamais"
	for size := 2; size <= min(maxPlace, len(said)-1); size++ { // "in this repo always …"
		place := " " + strings.Join(said[:size], " ") + " "
		if m, _ := markAt(said, size); (m.lasting || isVerb(said[size], all)) && !isVerb(said[0], all) && (namesProject(place) || marksOf(place).everywhere) {
			said = said[size:]
			break
		}
	}
	m, size := markAt(said, 0)
	switch {
	case m.prefers || len(said) > 1 && marks[said[1]].prefers:
		return namesProject(" " + clause + " ")
	case m.lasting && !m.front:
		return continues(said[size:], m)
	case marked && (m.forbids || isVerb(said[0], all)):
		return true
	case m.forbids && endsLasting(said):
		return true // "no more jokes from now on"
	case m.forbids:
		said = said[size:] // "ne fais jamais …"
	case size > 0:
		return false
	}
	return len(said) > 0 && hasMarkAfter(said)
}

// afterShould returns the words after "you should" in any language, or nil.
func afterShould(said []string) []string {
	text := strings.Join(said, " ")
	for n := range tongues {
		for should := range strings.SplitSeq(tongues[n].Should, "|") {
			if rest, ok := strings.CutPrefix(text, should+" "); ok && should != "" {
				return strings.Fields(rest)
			}
		}
	}
	return nil
}

// endsLasting reports whether a clause ends with a lasting mark of several words.
func endsLasting(said []string) bool {
	for n := 1; n < len(said); n++ {
		if m, size := markAt(said, n); m.lasting && !m.front && size > 1 && n+size == len(said) {
			return true
		}
	}
	return false
}

// continues reports whether the words after a lasting mark are an instruction, not small talk such
// as "always happy to help", nor a statement such as "from now on I work in Bonn".
func continues(said []string, begun mark) bool {
	of := begun.tongues
	for n := 0; n < len(said); n++ {
		m, size := markAt(said, n)
		switch {
		case m.forbids && !begun.forbids && n+size < len(said):
			return true // "no more emojis"
		case size > 0:
			n += size - 1
			continue
		case isPlease(said[n]):
			continue
		case isVerb(said[n], of):
			return n+1 == len(said) || !isSubject(said[n+1], of)
		}
		return isVerb(said[len(said)-1], of&verbLast)
	}
	return false
}

// hasMarkAfter reports whether a verb that instructs begins a clause, and a lasting mark of its
// language follows and belongs to the verb.
func hasMarkAfter(said []string) bool {
	if last := said[len(said)-1]; isVerb(last, verbLast) && !isFunction(last) && len(said) > 1 { // it may be about another rule
		return false
	}
	for n := 1; n < len(said); n++ {
		m, size := markAt(said, n)
		before := said[n-1]
		if m.lasting && !m.front && isVerb(said[0], m.tongues) && !m.tongues.has(before, func(l *tongue) []string { return strings.Fields(l.As) }) {
			next := ""
			if n+size < len(said) {
				next = said[n+size]
			}
			english := m.tongues&1 != 0
			switch {
			case next == "" && english:
				return size > 1
			case next == "" || n == 1 && !english || !isVerb(next, m.tongues) && (!english || isFunction(next) && n <= nearMark+1):
				return n == 1 || !isFunction(before) || isSelf(before) || isPlease(before) || namesProject(" "+strings.Join(said[1:n], " ")+" ")
			}
			return false
		}
		if words.Opens(said[n]) || isSubject(said[n], all) || size > 0 && m.forbids { // of another clause
			return false
		}
	}
	return false
}

// beginsUnspaced is instructs for scripts without spaces, and for Korean. In languages with the verb
// at the end, a topic may precede the mark, and the sentence also has to end as a request does.
func beginsUnspaced(s string, marked bool) bool {
	said := strings.TrimLeft(s, "请請")
	verbLast := strings.ContainsFunc(said, func(r rune) bool { return unicode.In(r, unicode.Hiragana, unicode.Katakana, unicode.Hangul) })
	begun := marked
	for _, w := range unspaced {
		topic, rest, found := strings.Cut(said, w)
		switch {
		case !found || !marks[w].lasting:
		case verbLast:
			begun = begun || topic == "" || utf8.RuneCountInString(topic) <= maxTopic && slices.ContainsFunc(topics, func(t string) bool { return strings.HasSuffix(topic, t) })
		case topic == "":
			begun = begun || marks[w].forbids || verbs.begin(rest) || marksOf(rest).lasting
		}
	}
	if verbLast {
		quotes := func(e string) bool { // "…てください" as an object
			_, rest, found := strings.Cut(said, e)
			return found && slices.ContainsFunc(quoting, func(q string) bool { return strings.HasPrefix(rest, q) })
		}
		return begun && slices.ContainsFunc(tongues, func(l tongue) bool {
			ends := strings.Fields(l.Ends)
			return slices.ContainsFunc(ends, func(e string) bool { return strings.HasSuffix(said, e) }) && !slices.ContainsFunc(ends, quotes)
		})
	}
	return begun || !strings.Contains(said, " ") && marksOf(said).lasting && verbs.begin(said)
}

// quoting are the particles after a sentence that another one is about.
var quoting = []string{"を", "と", "は", "라고", "를"}

// topics are the particles of a topic.
var topics = []string{"は", "では", "に", "前に", "는 ", "은 ", "에 ", "에서 ", "에는 ", "에서는 "}

// isAbout reports whether a sentence that begins as a rule says something about it: "… is bad
// advice". It has a word such as "says" outside of a clause.
func isAbout(s string) bool {
	for _, w := range saidIn(s) {
		if w = bareOf(w); telling.have(w) {
			return true
		}
		if words.Opens(w) {
			break
		}
	}
	return false
}

// tongueSet is a set of tongues, one bit for each.
type tongueSet uint32

const all tongueSet = 1<<32 - 1

// verbLast are the tongues in which an infinitive at the end of a sentence instructs.
var verbLast = func() (of tongueSet) {
	for n := range tongues {
		if tongues[n].VerbLast {
			of |= 1 << n
		}
	}
	return of
}()

// has reports whether a list of one of the tongues has a word.
func (of tongueSet) has(w string, list func(l *tongue) []string) bool {
	for n := range tongues {
		if of>>n&1 != 0 && slices.Contains(list(&tongues[n]), w) {
			return true
		}
	}
	return false
}

// isVerb reports whether a rule in some tongues may begin with a word.
func isVerb(w string, of tongueSet) bool {
	bare, _, _ := strings.Cut(w, "-") // "tutoie-moi"
	for n := range verbs {
		if of>>n&1 != 0 && (verbs[n].has(bare) || runs[n].has(bare)) {
			return true
		}
	}
	return of != 0 && words.BeginsRequest(bare)
}

// isSelf reports whether a word refers to the author in any language.
func isSelf(w string) bool {
	return all.has(w, func(l *tongue) []string { return strings.Fields(l.Self) })
}

// isSubject reports whether a word is the author as the subject of a sentence.
func isSubject(w string, of tongueSet) bool {
	return of.has(w, func(l *tongue) []string { return append(strings.Fields(l.Self), "")[:1] })
}

// isPlease reports whether a word may precede a request in any language.
func isPlease(w string) bool {
	return all.has(w, func(l *tongue) []string { return strings.Split(l.Please, "|") })
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
