package words

import (
	_ "embed"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Tells reports whether a text has a content word, other than the routine words of
// greetings and thanks.
func Tells(text string) (does bool) {
	Each(text, func(w []byte, k Significance) bool {
		does = k == Content && !routine[string(w)]
		return !does
	})
	return does
}

//go:embed routine.txt
var routineList string

// routine has the words of greetings, thanks and requests to continue, in the form of Each.
var routine = func() map[string]bool {
	m := make(map[string]bool)
	for line := range strings.Lines(routineList) {
		if line[0] == '#' {
			continue
		}
		for _, word := range strings.Fields(line) {
			Each(word, func(w []byte, _ Significance) bool {
				m[string(w)] = true
				return true
			})
		}
	}
	return m
}()

// longestNod is the length, in bytes, up to which a text may be a nod.
const longestNod = 120

// Nods reports whether a text has at most two words, at most one of them a content word:
// "noted", "got it".
func Nods(text string) bool {
	if len(text) > longestNod {
		return false
	}
	all, telling := 0, 0
	Each(text, func(_ []byte, k Significance) bool {
		if all++; k == Content {
			telling++
		}
		return all <= 2
	})
	return all <= 2 && telling <= 1
}

// entrusts matches questions that ask to remember what they say.
var entrusts = regexp.MustCompile(`(?i)^\W*(?:(?:can|could|would|will) you (?:please )?(?:remember|note|keep in mind)(?: that|:)|` +
	`(?:kannst|könntest|würdest) du .{0,20}merken(?:, dass|:)|(?:peux-tu|pouvez-vous) .{0,20}retenir qu[e']|(?:puedes|podrías) .{0,20}recordar que|` +
	`(?:puoi|potresti) .{0,20}ricordare che|(?:podes|pode) .{0,20}lembrar(?:-te)?(?: de)? que|(?:kun|kan) je .{0,20}onthouden dat|` +
	`(?:можешь|можете) .{0,20}запомнить, что|(?:możesz|mógłbyś) .{0,20}zapamiętać, że)`)

// IsQuestion reports whether a text ends with a question, other than a request to remember it.
func IsQuestion(s string) bool { return endsAsQuestion(s) && !entrusts.MatchString(s) }

func endsAsQuestion(s string) bool {
	s = strings.TrimRightFunc(s, func(r rune) bool { return unicode.IsSpace(r) || r == '"' || r == '\'' })
	if greek, ok := strings.CutSuffix(s, ";"); ok {
		r, _ := utf8.DecodeLastRuneInString(greek)
		return unicode.Is(unicode.Greek, r)
	}
	last, _ := utf8.DecodeLastRuneInString(s)
	return strings.ContainsRune(questionMarks, last) || strings.ContainsRune(s[strings.LastIndexAny(s, ".!?\n")+1:], '՞') || strings.HasSuffix(s, "か。") || strings.HasSuffix(s, "か")
}

// HasQuestion reports whether a text has or ends with a question, in Japanese also one that ends with
// the particle that asks.
func HasQuestion(s string) bool {
	return strings.ContainsAny(s, questionMarks) || strings.Contains(s, "か。") || IsQuestion(s)
}

// OnlyAsks reports whether a text only asks: it ends with a question, and each of its
// sentences is a question or has at most one telling word.
func OnlyAsks(s string) bool {
	if !IsQuestion(s) {
		return false
	}
	for said := range Sentences(s) {
		if len(Of(said, 2)) > 1 && !IsQuestion(said) {
			return false
		}
	}
	return true
}

// Signs that end a sentence, in various scripts.
const (
	questionMarks = "?？؟՞\u037e፧" // the fourth is inside the word, the fifth is Greek
	fullStops     = "。｡！।۔։"
)

// heldFrom is the least share of a text's content words in another text that holds it.
const heldFrom = 0.8

// Holds reports whether a text contains nearly all content words of another, and all words with
// a digit: another value is another statement. A text without content words neither holds a text
// nor is held.
func Holds(text, other string) bool {
	in, held, all := ContentOf(text), 0, 0
	for w := range ContentOf(other) {
		all++
		switch {
		case in[w]:
			held++
		case strings.ContainsFunc(w, unicode.IsDigit):
			return false
		}
	}
	return all > 0 && float64(held) >= heldFrom*float64(all)
}

// Key returns a key that is equal for copies of one statement: their words are the same from the
// first content word on, whatever their case, accents, endings and signs.
func Key(text string) string {
	b, content := new(strings.Builder), false
	Each(text, func(w []byte, k Significance) bool {
		if content = content || k == Content; content {
			b.Write(append(w, ' '))
		}
		return true
	})
	if content {
		return b.String()
	}
	return strings.Join(strings.Fields(strings.ToLower(text)), " ")
}

// ContentOf returns the content words of a text.
func ContentOf(text string) map[string]bool {
	out := make(map[string]bool)
	Each(text, func(w []byte, k Significance) bool {
		if k == Content {
			out[string(w)] = true
		}
		return true
	})
	return out
}
