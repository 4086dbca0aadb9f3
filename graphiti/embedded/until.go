package embedded

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// untilWords precede, or in some languages follow, the last day of what has an end.
var untilWords = strings.Fields("until till til through bis jusque hasta fino até ate tot tills до do până pana μέχρι έως kadar hadi sampai hingga đến tới asti saakka حتى تا עד तक পর্যন্ত வரை ถึง 까지")

// theDay are words between such a word and a day of the month, which tell it from an hour.
var theDay = strings.Fields("the zum den el au al o dia tarehe ngày tanggal")

// wideEnd matches a last day in Chinese, Japanese and Korean.
var wideEnd = regexp.MustCompile(`(?:(\d{4})[年년])?\s*(\d{1,2})\s*[月월]\s*(\d{1,2})\s*[日일号號]\s*(?:まで|까지|为止|為止)|[到至]\s*(?:(\d{4})年)?(\d{1,2})月(\d{1,2})[日号號]`)

// endIn returns the end of the last day that a short text names, such as "on call until 27
// November", or zero. A date without a year is the first one from the text's own day on.
func endIn(text string, said time.Time) time.Time {
	if len(text) > saidInReturn {
		return time.Time{}
	}
	if m := wideEnd.FindStringSubmatch(text); m != nil {
		n := func(i int) int { v, _ := strconv.Atoi(m[i] + m[i+3]); return v }
		return endOfDay(n(1), time.Month(n(2)), n(3), said)
	}
	words := strings.Fields(strings.NewReplacer("jusqu'", "jusque ", "jusqu’", "jusque ").Replace(strings.ToLower(text)))
	for i := range words {
		words[i] = strings.TrimFunc(words[i], func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) && !unicode.IsMark(r) })
	}
	for i, w := range words {
		if !slices.Contains(untilWords, w) {
			continue
		}
		for j := i + 1; j < min(len(words), i+4); j++ { // "until Friday the 27th"
			if end := dateAt(words[j:], j > i+1 && slices.Contains(theDay, words[j-1]), said); !end.IsZero() {
				return end
			}
		}
		if i > 0 {
			if end := dateAt(words[i-1:i], false, said); !end.IsZero() {
				return end
			}
		}
	}
	return time.Time{}
}

// dateAt returns the end of the day with which some words begin, or zero. isDay tells that a bare
// number is a day.
func dateAt(words []string, isDay bool, said time.Time) time.Time {
	if t, err := time.Parse(time.DateOnly, words[0]); err == nil {
		return endOfDay(t.Year(), t.Month(), t.Day(), said)
	}
	if parts := strings.FieldsFunc(words[0], func(r rune) bool { return r == '.' || r == '/' }); len(parts) == 2 || len(parts) == 3 {
		day, month, year := number(parts[0]), number(parts[1]), 0
		if len(parts) == 3 {
			year = number(parts[2])
		}
		if strings.Contains(words[0], "/") {
			if day > 12 == (month > 12) { // either may be the month
				return time.Time{}
			}
			if month > 12 {
				day, month = month, day
			}
		}
		return endOfDay(year, time.Month(month), day, said)
	}
	next := 1
	if w := wordAt(words, 1); w == "of" || w == "de" {
		next = 2
	}
	day := number(strings.TrimRight(words[0], "stndrhº"))
	month, year := monthNames[wordAt(words, next)], number(wordAt(words, next+1))
	if m := monthNames[words[0]]; m != 0 { // "November 27th"
		day, month, year = numberAt(words, 1), m, number(wordAt(words, 2))
	}
	if year < 1990 {
		year = 0
	}
	if month == 0 && (isDay || day > 0 && words[0] != strconv.Itoa(day)) { // "the 25th"
		month = said.Month()
		if day < said.Day() {
			month++
		}
		return endOfDay(said.Year(), month, day, said)
	}
	return endOfDay(year, month, day, said)
}

// wordAt returns a word, or "" if there is none.
func wordAt(words []string, i int) string {
	if i < 0 || i >= len(words) {
		return ""
	}
	return words[i]
}

// numberAt returns the number that a word is, such as 7 and 7th, or 0.
func numberAt(words []string, i int) int {
	return number(strings.TrimRight(wordAt(words, i), "stndrh"))
}

func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0
	}
	return n
}

// endOfDay returns the end of a day, or zero without one. Year 0 is the next such day.
func endOfDay(year int, month time.Month, day int, said time.Time) time.Time {
	if day < 1 || day > 31 || month < 1 || month > 13 {
		return time.Time{}
	}
	said = said.Local()
	of := func(year int) time.Time {
		return time.Date(year, month, day+1, 0, 0, 0, 0, time.Local).Add(-time.Second)
	}
	switch end := of(said.Year()); {
	case year != 0:
		return of(year)
	case end.Before(said):
		return of(said.Year() + 1)
	default:
		return end
	}
}
