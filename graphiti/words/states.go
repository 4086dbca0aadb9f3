package words

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/clipperhouse/uax29/v2/sentences"
)

// longestOrder is the maximum number of words of a request: a longer sentence has details
// of its own.
const longestOrder = 16

// States reports whether a text states something: one of its sentences is neither a
// question, nor a request for the current task, nor mere routine such as thanks. A sentence
// in a language that is not in the table states something.
func States(text string) bool {
	lang := languageOf(text)
	for s := range Sentences(text) {
		if !AsksSomething(s) && !orders(s, lang) && Tells(s) && !Nods(s) {
			return true
		}
	}
	return false
}

// AsksSomething reports whether a text is a question, with a mark or without: it begins
// with a word that asks, and has no comma or full stop, after which it could continue as a
// statement.
func AsksSomething(text string) bool {
	text = strings.TrimSpace(text)
	if IsQuestion(text) {
		return true
	}
	return len(text) <= lookedAt && !strings.ContainsAny(text, ",.:;!،。、，！\n") && hasPart(text, asking, 1)
}

// Changes reports whether a text has a word of change, such as "no longer".
func Changes(text string) bool { return hasPart(text, changing, 1<<30) }

// Opens reports whether a clause may begin with a word: one that asks, or one such as "that".
func Opens(word string) bool {
	word = string(fold(nil, []byte(word)))
	return table[asking][word] != 0 || slices.Contains(opening, word)
}

var opening = strings.Fields(`that if unless without ohne sans sin senza sem zonder bez без because while until before after wenn dass falls ob bevor bis weil sobald solange si que puisque avant
	cuando porque hasta se quando perche finche ate als omdat voordat totdat jesli gdy ze az если когда что чтобы пока om nar eger`)

// Requests reports whether a sentence of a text begins with a word of request, such as
// "translate": the rest of the text may be a document.
func Requests(text string) bool {
	lang := languageOf(text)
	for s := range Sentences(text) {
		if does, lasting, _ := beginsWithRequest(s, lang); does && !lasting {
			return true
		}
	}
	return false
}

// orders reports whether a sentence of a text in a language is a request for the current
// task: it begins with a word of request, possibly after words such as "ok, next", and has
// no number, since a later question may ask for the number.
func orders(sentence string, lang language) (does bool) {
	if strings.ContainsFunc(sentence, unicode.IsNumber) {
		return false
	}
	does, lasting, n := beginsWithRequest(sentence, lang)
	return does && !lasting && n <= longestOrder
}

// beginsWithRequest reports whether a sentence begins with a word of request, whether it has a
// word such as "always", and its number of words.
func beginsWithRequest(sentence string, lang language) (does, lasting bool, n int) {
	is := func(w string) bool { of := table[ordering][w]; return of != 0 && (lang == 0 || of>>lang&1 != 0) }
	end := strings.TrimRightFunc(sentence, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsMark(r) })
	for _, w := range unspaced[ordering] {
		if no, ok := strings.CutPrefix(w, noOrder); ok && strings.Contains(end, no) {
			return false, true, n
		}
		does = does || strings.HasPrefix(end, w) || strings.HasSuffix(end, w)
	}
	var room [64]byte
	first := true
	eachPlain(sentence, room[:], func(w []byte) {
		n++
		does, lasting = does || first && is(string(w)), lasting || is(noOrder+string(w))
		first = first && (routine[Term(string(w))] || table[changing][string(w)] != 0)
	})
	return does, lasting, n
}

// Sentences yields the sentences of a text, as Unicode defines them. A full stop ends no sentence
// before a number ("no. 5") or after an abbreviation such as "Dr" or "e.g".
func Sentences(text string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		from := 0
		for it := sentences.FromString(text); it.Next(); {
			s := strings.TrimSpace(text[from:it.End()])
			next, _ := utf8.DecodeRuneInString(text[it.End():])
			word, stopped := strings.CutSuffix(s[strings.LastIndexFunc(s, unicode.IsSpace)+1:], ".")
			if stopped && it.End() < len(text) && text[it.End()-1] != '\n' && (isAbbreviation(word) || unicode.IsNumber(next)) {
				continue
			}
			if from = it.End(); s != "" && !yield(s) {
				return
			}
		}
	}
}

// abbreviations are common ones with a vowel, of the languages of tongues, in lower case.
// Those without a vowel, such as Dr and Nr, need no list.
var abbreviations = strings.Fields("prof no inc co corp av ave mme mlle me sra srta sig dott ing arch avv etc ca inkl evtl usw abs tel est dept fig vol ed approx " +
	"feat incl ext ul al inż im проф ул им ок руб тел см та")

// isAbbreviation reports whether the full stop after a word belongs to the word: it is an
// initial, a common abbreviation, or has no vowel.
func isAbbreviation(word string) bool {
	word = strings.TrimLeftFunc(word, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	if utf8.RuneCountInString(word) == 1 {
		r, _ := utf8.DecodeRuneInString(word)
		return unicode.IsLetter(r)
	}
	lower := strings.ToLower(word)
	if i := strings.LastIndexByte(lower, '.'); i > 0 && i == len(lower)-2 && lower[i+1] >= 'a' { // e.g, z.B
		return true
	}
	if slices.Contains(abbreviations, lower) {
		return true
	}
	return len(word) <= 12 && !strings.ContainsFunc(lower, func(r rune) bool {
		return !unicode.In(r, unicode.Latin, unicode.Cyrillic) || strings.ContainsRune("aeiouyàáâãäåæèéêëìíîïòóôõöøùúûüýąęóаеёиоуыэюя", r)
	})
}
