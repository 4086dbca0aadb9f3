package distil

import (
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti/words"
)

// isPerson has the names of the person in facts, as words.Each yields them: a model writes
// "the user" in place of "I". unspacedPerson has the names in scripts without spaces.
var (
	isPerson = func() map[string]bool {
		all := make(map[string]bool)
		for _, w := range words.Of("user users benutzer benutzerin nutzer nutzerin utilisateur utilisatrice usuario usuaria utente usuário usuária gebruiker użytkownik użytkowniczka пользователь kullanıcı användaren المستخدم उपयोगकर्ता", maxText) {
			all[w] = true
		}
		return all
	}()
	unspacedPerson = strings.NewReplacer("用户", " ", "用戶", " ", "ユーザー", " ", "ユーザ", " ", "사용자", " ", "ผู้ใช้", " ")
)

// source is the text that must contain every content word of a fact. A host, a command and a
// product are ordinary words as well, so that no form of a word tells whether it matters.
type source struct {
	words  map[string]bool
	text   string // with decimal digits
	around time.Time
	dated  bool // a message has a date with a month, so a fact of it needs one
}

func newSource(text string, at time.Time) *source {
	s := &source{words: make(map[string]bool), text: decimal(text), around: at}
	words.Each(s.text, func(w []byte, _ words.Significance) bool {
		s.words[string(w)] = true
		if n, err := strconv.Atoi(string(w)); err == nil {
			s.words[strconv.Itoa(n)] = true // 07 is 7
		}
		return true
	})
	return s
}

// missing is the number of successive pairs of characters that a fact in an alphabet without spaces,
// such as Thai, may add to its source: pairs between two words differ, and more of them are a word.
const missing = 2

// has reports whether the source has all content words of a text.
func (s *source) has(text string) bool {
	text = dates.ReplaceAllStringFunc(unspacedPerson.Replace(decimal(text)), func(day string) string {
		if !s.dated && s.isNear(day) {
			return " " // such as "tomorrow" in the source
		}
		return day
	})
	ok, added, number := true, 0, false
	words.Each(text, func(w []byte, k words.Significance) bool {
		word := string(w)
		first, size := utf8.DecodeRune(w)
		isUnit := number && size == len(w) && unicode.IsLetter(first) // such as "12 m"
		number = unicode.IsNumber(first)
		switch {
		case k != words.Content || isPerson[word] || isUnit:
		case unicode.In(first, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar):
			if added++; s.words[word] {
				added = 0
			}
			ok = added <= missing
		default:
			ok = s.hasWord(word) || words.IsCommon(word, text) || words.IsCommon(word, s.text)
		}
		return ok
	})
	return ok
}

const (
	minStem   = 4 // characters that two forms of a word share
	maxEnding = 4 // characters that one of them has in addition
)

// hasWord reports whether the source has a content word, another form of it, or the
// characters of a pair.
func (s *source) hasWord(w string) bool {
	if s.words[w] {
		return true
	}
	first, size := utf8.DecodeRuneInString(w)
	switch {
	case unicode.IsNumber(first):
		n, err := strconv.Atoi(w)
		return err == nil && (s.words[strconv.Itoa(n)] || len(w) == 4 && s.around.Year()-1 <= n && n <= s.around.Year()+1)
	case unicode.In(first, unicode.Han, unicode.Katakana, unicode.Hangul):
		// The plain form of a Korean verb ends so.
		return strings.ContainsRune(s.text, first) && (strings.Contains(s.text, w[size:]) || w[size:] == "다")
	}
	if unicode.In(first, unicode.Hebrew, unicode.Arabic) && s.words[w[size:]] { // an article or a preposition
		return true
	}
	return hasForm(s.words, []rune(w))
}

// hasForm reports whether one of some words differs from a word only by its ending.
func hasForm(of map[string]bool, w []rune) bool {
	for other := range of {
		short, long := []rune(other), w
		if len(short) > len(long) {
			short, long = long, short
		}
		shared := 0
		for shared < len(short) && short[shared] == long[shared] {
			shared++
		}
		if shared >= minStem && shared >= len(short)-1 && len(long)-shared <= maxEnding {
			return true
		}
	}
	return false
}

// impliedDays is the most days between a message and a day that only a word such as "tomorrow" names.
const impliedDays = 62

// dates matches days with a month.
var dates = regexp.MustCompile(`\b(\d{4})-(\d{2})-(\d{2})\b|(?:(\d{4})\s*[年년]\s*)?(\d{1,2})\s*[月월]\s*(\d{1,2})\s*[日일号號]`)

// isNear reports whether a match of dates may be the day that a word such as "tomorrow" in the
// source means.
func (s *source) isNear(day string) bool {
	m := dates.FindStringSubmatch(day)
	n := func(i, j, or int) int {
		if v, err := strconv.Atoi(m[i] + m[j]); err == nil {
			return v
		}
		return or
	}
	month, dayOf := n(2, 5, 0), n(3, 6, 0)
	t := time.Date(n(1, 4, s.around.Year()), time.Month(month), dayOf, 0, 0, 0, 0, time.UTC)
	isSaid := s.words[strconv.Itoa(dayOf)] || t.Sub(s.around).Abs() < impliedDays*24*time.Hour
	return int(t.Month()) == month && t.Day() == dayOf && isSaid && isNear(t, s.around)
}

// numerals matches Chinese numerals up to 99.
var numerals = regexp.MustCompile(`[一二三四五六七八九]?十[一二三四五六七八九]?|[一二三四五六七八九]`)

// decimal returns a text with ASCII digits in place of those of other scripts and of Chinese
// numerals, also in names: it changes both texts of a comparison.
func decimal(text string) string {
	numeral := func(s string) int { return (strings.Index("一二三四五六七八九", s) + len("一")) / len("一") }
	text = numerals.ReplaceAllStringFunc(text, func(n string) string {
		tens, ones, ok := strings.Cut(n, "十")
		switch {
		case !ok:
			return strconv.Itoa(numeral(n))
		case tens == "":
			tens = "一"
		}
		if ones == "" {
			return strconv.Itoa(10 * numeral(tens))
		}
		return strconv.Itoa(10*numeral(tens) + numeral(ones))
	})
	return strings.Map(func(r rune) rune {
		for _, of := range unicode.Nd.R16 { // each has ten digits, or a multiple
			if r > unicode.MaxASCII && rune(of.Lo) <= r && r <= rune(of.Hi) {
				return '0' + (r-rune(of.Lo))%10
			}
		}
		return r
	}, text)
}
