package words

import (
	"strings"
	"unicode"
	"unicode/utf8"
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

// BeginsRequest reports whether a request may begin with a word, in any language.
func BeginsRequest(word string) bool { return table[ordering][string(fold(nil, []byte(word)))] != 0 }

// orders reports whether a sentence of a text in a language is a request for the current
// task: it begins with a word of request, possibly after words such as "ok, next", and has
// no number, since a later question may ask for the number.
func orders(sentence string, lang language) (does bool) {
	if strings.ContainsFunc(sentence, unicode.IsNumber) {
		return false
	}
	is := func(w string) bool { of := table[ordering][w]; return of != 0 && (lang == 0 || of>>lang&1 != 0) }
	end := strings.TrimRightFunc(sentence, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsMark(r) })
	for _, w := range unspaced[ordering] {
		if no, ok := strings.CutPrefix(w, noOrder); ok && strings.Contains(end, no) {
			return false
		}
		does = does || strings.HasPrefix(end, w) || strings.HasSuffix(end, w)
	}
	var room [64]byte
	n, first, lasting := 0, true, false
	eachPlain(sentence, room[:], func(w []byte) {
		n++
		does, lasting = does || first && is(string(w)), lasting || is(noOrder+string(w))
		first = first && (routine[Term(string(w))] || table[changing][string(w)] != 0)
	})
	return does && !lasting && n <= longestOrder
}

// Sentences yields the sentences of a text. A dot ends a sentence only before white space
// or at the end of the text, not before a number ("no. 5"), and not after an abbreviation
// such as "Dr" or "e.g".
func Sentences(text string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		from := 0
		for i, r := range text {
			next := i + utf8.RuneLen(r)
			switch {
			case r == '.':
				if next < len(text) && text[next] != ' ' && text[next] != '\n' || from < i && abbreviates(text[from:i], text[next:]) {
					continue
				}
			case r == '!' || r == '\n' || strings.ContainsRune(questionMarks, r) || strings.ContainsRune(fullStops, r):
			default:
				continue
			}
			if next < len(text) && r != '\n' && strings.ContainsAny(text[next:next+1], ".!?") {
				continue // as in "?!"
			}
			if s := strings.TrimSpace(text[from:next]); s != "" && !yield(s) {
				return
			}
			from = next
		}
		if s := strings.TrimSpace(text[from:]); s != "" {
			yield(s)
		}
	}
}

// The maximum numbers of letters of an abbreviation, and of one before a number.
const (
	longestAbbreviation = 3
	longestBeforeNumber = 4
)

// abbreviates reports whether a text ends with a short word with a capital, such as "Dr",
// with letters between dots, such as "e.g", or with a short word before a number, such as
// "no".
func abbreviates(text, behind string) bool {
	word := text[strings.LastIndexFunc(text, unicode.IsSpace)+1:]
	if strings.Contains(word, ".") {
		return len(word)-strings.Count(word, ".") == strings.Count(word, ".")+1
	}
	first, _ := utf8.DecodeRuneInString(word)
	next, _ := utf8.DecodeRuneInString(strings.TrimLeft(behind, " "))
	n := utf8.RuneCountInString(word)
	return unicode.IsUpper(first) && n <= longestAbbreviation && len(word) < len(text) ||
		unicode.IsNumber(next) && unicode.IsLetter(first) && n <= longestBeforeNumber
}
