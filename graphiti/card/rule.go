package card

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti/words"
)

const (
	maxRule   = 200 // characters of a rule
	minRest   = 2   // words of a rule besides its marks
	minWish   = 3   // content words of a rule whose mark is a preference for the project
	maxPlace  = 4   // words for the project before a rule: "in this repo, …"
	maxEnding = 6   // words of "no more …"
	nearMark  = 2   // words between an English verb and its mark: "write comments always in German"
	maxTopic  = 14  // characters of a topic before the mark of a language without spaces
)

// readRule reports whether a sentence is a rule, a lasting instruction for the model, and whether it
// applies in all projects. A sentence without a lasting mark is a request for
// the current task, unless it expresses a preference for the project. A sentence that
// begins with a pronoun or an article is a statement, such as "the server never answers". A
// question is no rule.
func readRule(s string) (everywhere, ok bool) {
	if s == "" || utf8.RuneCountInString(s) > maxRule || strings.HasSuffix(s, ":") || asks(s) {
		return false, false
	}
	m := marksOf(s)
	_, rest, _ := strings.Cut(s, ", ") // "for tests, always use testify"
	begun, said := begins(s), saidIn(s)
	wants := m.lasting && slices.ContainsFunc(said[:min(maxPlace, len(said))], wanting.have)
	goesOn, ends := lastingIn(said)
	first, _ := markAt(said, 0)
	stops := first.forbids && len(said) <= maxEnding && slices.ContainsFunc(said[1:], func(w string) bool { return more.have(bareOf(w)) }) // "keine Emojis mehr"
	lasting := m.lasting && (begun || rest != "" && begins(rest) || (!tells(said) || afterShould(said) != nil) && (m.everywhere || goesOn || unspacedIn(s) || ends) || wants) && ContentWords(s) > 0
	wishes := m.prefers && namesProject(s) && ContentWords(s) >= minWish
	return m.everywhere || m.anywhere && m.lasting, (lasting || wishes || stops) && (m.rest >= minRest || begun)
}

// begins reports whether a sentence has the form of a rule, and nothing else. Its first clause begins
// with a lasting mark, or with a verb that instructs and has one soon after. A clause such as "in this
// repo" or "every time you add a table" may precede. Only words of please, other marks, or a clause such as
// "unless I ask" may follow: no other beginning or end is evidence that the sentence is its author's.
func begins(s string) bool {
	clauses := strings.FieldsFunc(strings.ReplaceAll(s, "’", "'"), func(r rune) bool { return strings.ContainsRune(",，、،", r) })
	var marked tongueSet
	for ; len(clauses) > 1; clauses = clauses[1:] {
		leads, of := leadsIn(clauses[0])
		if !leads {
			break
		}
		marked |= of
	}
	if len(clauses) == 0 {
		return false
	}
	for _, tail := range clauses[1:] {
		joins, of := joinsRule(tail)
		if !joins {
			return false
		}
		marked |= of
	}
	return instructs(clauses[0], marked)
}

// leadsIn reports whether a clause may precede a rule, and the tongues in which it is a lasting mark.
func leadsIn(clause string) (leads bool, marked tongueSet) {
	clause = strings.ToLower(clause)
	said := strings.Fields(clause)
	if len(said) == 0 {
		return false, 0
	}
	m, size := markAt(said, 0)
	sum := marksOf(clause)
	switch {
	case m.front:
		return true, m.tongues
	case sum.lasting && sum.rest == 0, sum.everywhere && len(said) <= maxPlace+1:
		return true, sum.tongues
	}
	return size == len(said) || isPlease(strings.TrimSpace(clause)) || len(said) <= maxPlace && namesProject(" "+clause+" ") || isCondition(said), 0
}

// joinsRule reports whether a clause may follow a rule, and the tongues in which it is a lasting mark. A
// condition may follow, or a choice that the rule is set against.
func joinsRule(clause string) (joins bool, marked tongueSet) {
	clause = strings.ToLower(strings.Trim(clause, " .!。！"))
	said, m := strings.Fields(clause), marksOf(clause)
	if len(said) == 0 || m.lasting && m.rest == 0 || isPlease(clause) {
		return true, m.tongues
	}
	if first, size := markAt(said, 0); first.contrasts && len(said) <= size+longestOther && words.Tells(strings.Join(said[size:], " ")) {
		return !slices.ContainsFunc(said[size:], isFunction), 0
	}
	return isCondition(said) || isCondition(said[1:]), 0 // "even if …"
}

// isCondition reports whether a clause is a condition of a rule, without a word such as "said".
func isCondition(said []string) bool {
	tells := func(w string) bool { return telling.have(w) && !isFunction(w) }
	return len(said) > 1 && words.Opens(said[0]) && !likeness.have(said[0]) && !words.AsksSomething(strings.Join(said, " ")) && !telling.have(said[1]) && !slices.ContainsFunc(said, tells)
}

// instructs reports whether a clause is an instruction with a lasting mark, which may be in another
// clause.
func instructs(clause string, marked tongueSet) bool {
	said := strings.Fields(strings.TrimRight(clause, ".!。！ "))
	for n := range said {
		if n == 0 || n+1 < len(said) || !startsUpper(said[n]) { // a German verb ends no clause with a capital
			said[n] = strings.ToLower(said[n])
		}
	}
	for len(said) > 1 && isPlease(said[0]) {
		said = said[1:]
	}
	if len(said) == 0 {
		return false
	}
	if r, _ := utf8.DecodeRuneInString(said[0]); r >= firstUnspaced {
		return beginsUnspaced(strings.Join(said, " "), marked != 0)
	}
	if rest := afterShould(said); rest != nil {
		m, _ := markAt(rest, 0)
		return m.lasting
	}
	said[0] = strings.TrimPrefix(said[0], "n'")                 // French: "n'utilise jamais"
	for size := 2; size <= min(maxPlace, len(said)-1); size++ { // "in this repo always …"
		place := " " + strings.Join(said[:size], " ") + " "
		if m, _ := markAt(said, size); (m.lasting || verbs.have(said[size])) && !verbs.have(said[0]) && (namesProject(place) || marksOf(place).everywhere) {
			said = said[size:]
			break
		}
	}
	m, size := markAt(said, 0)
	switch {
	case m.lasting && !m.front:
		return continues(said[size:], m)
	case m.prefers || len(said) > 1 && marks[said[1]].prefers:
		return namesProject(" " + clause + " ")
	case marked != 0 && (m.forbids || isVerb(said[0], marked)):
		return true
	case m.forbids && size < len(said):
		if _, ends := lastingIn(said); ends {
			return true // "no more jokes from now on"
		}
		said = said[size:] // "ne fais jamais …"
		return hasMarkAfter(said, func(of tongueSet) bool { return isVerb(said[0], of) || denied.haveIn(said[0], of) })
	case size > 0:
		return false
	}
	return hasMarkAfter(said, func(of tongueSet) bool { return isVerb(said[0], of) })
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

// lastingIn reports whether a content word follows a lasting mark ("as always" makes no rule), and
// whether one of several words ends a clause.
func lastingIn(said []string) (goesOn, ends bool) {
	for n := range said {
		if m, size := markAt(said, n); m.lasting {
			goesOn = goesOn || ContentWords(strings.Join(said[n+size:], " ")) > 0
			ends = ends || n > 0 && !m.front && size > 1 && n+size == len(said)
		}
	}
	return goesOn, ends
}

// continues reports whether the words after a lasting mark are an instruction, not small talk such
// as "always happy to help", nor a statement such as "from now on I work in Bonn".
func continues(said []string, begun mark) bool {
	of := begun.tongues
	for n := 0; n < len(said); n++ {
		m, size := markAt(said, n)
		switch {
		case (m.forbids && !begun.forbids || m.prefers) && n+size < len(said):
			return true // "no more emojis"
		case size > 0:
			n += size - 1
			continue
		case isPlease(said[n]):
			continue
		case isVerb(said[n], of):
			return n+1 == len(said) || !subject.haveIn(said[n+1], of)
		}
		last := said[len(said)-1]
		return lastVerbs.haveIn(last, of) && !startsUpper(last) && !slices.ContainsFunc(said, subject.have)
	}
	return false
}

// hasMarkAfter reports whether a verb that instructs begins a clause, and a lasting mark of its
// language follows and belongs to the verb.
func hasMarkAfter(said []string, begins func(of tongueSet) bool) bool {
	for n := 1; n < len(said); n++ {
		m, size := markAt(said, n)
		before, rest, english := said[n-1], said[min(n+size, len(said)):], m.tongues&1 != 0
		if m.lasting && !m.front && begins(m.tongues) && !likeness.haveIn(before, m.tongues) {
			switch {
			case continues(rest, m): // the first word is a task, and the rest is another's rule
				return false
			case english && len(rest) == 0:
				return size > 1
			case english && (!isFunction(rest[0]) || n > nearMark+1):
				return false
			}
			return n == 1 || !isFunction(before) || selves.have(before) || isPlease(before) || namesProject(" "+strings.Join(said[1:n], " ")+" ")
		}
		each := n+1 < len(said) && longest[said[n+1]] > 1 // "before every commit" is no clause
		if words.Opens(said[n]) && !each || subject.have(said[n]) || m.forbids {
			return false // of another clause
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
		case likeness.begin(rest): // "いつも通り"
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
	said := strings.FieldsFunc(strings.ToLower(s), func(r rune) bool { return !isWordRune(r) })
	if end := slices.IndexFunc(said, words.Opens); end >= 0 {
		said = said[:end]
	}
	return slices.ContainsFunc(said, telling.have)
}

// tongueSet is a set of tongues, one bit for each.
type tongueSet uint32

// isVerb reports whether a rule in some tongues may begin with a word.
func isVerb(w string, of tongueSet) bool {
	bare, _, _ := strings.Cut(w, "-") // "tutoie-moi"
	return verbs.haveIn(bare, of) || runs.haveIn(bare, of)
}

// isPlease reports whether a word may precede a request in any language.
func isPlease(w string) bool {
	return !selves.have(w) && slices.ContainsFunc(tongues, func(l tongue) bool { return slices.Contains(strings.Split(l.Please, "|"), w) }) // Polish "i" is "and"
}

func isFunction(w string) (is bool) {
	words.Each(w, func(_ []byte, k words.Significance) bool {
		is = k == words.Function
		return false
	})
	return is
}
