package embedded

import (
	"slices"
	"strings"
	"time"
	"unicode"
)

// dates is the set of times that a question names; the zero value is empty.
type dates struct {
	months [13]bool
	days   [32]bool
	years  []int
	month  bool // months has one
	spans  []span
	former bool // the question asks for an earlier state without a date
}

// monthNames maps the names of months to their numbers. A name with another meaning counts
// only next to a number or after a preposition (see datesIn).
var monthNames = map[string]time.Month{
	"january": 1, "february": 2, "march": 3, "april": 4, "may": 5, "june": 6, "july": 7, "august": 8, "september": 9, "october": 10, "november": 11, "december": 12,
	"januar": 1, "februar": 2, "märz": 3, "mai": 5, "juni": 6, "juli": 7, "oktober": 10, "dezember": 12,
	"janvier": 1, "février": 2, "mars": 3, "avril": 4, "juin": 6, "juillet": 7, "août": 8, "septembre": 9, "octobre": 10, "novembre": 11, "décembre": 12,
	"enero": 1, "febrero": 2, "marzo": 3, "abril": 4, "mayo": 5, "junio": 6, "julio": 7, "agosto": 8, "septiembre": 9, "octubre": 10, "noviembre": 11, "diciembre": 12,
}

// ambiguous has the names of months with another meaning.
var ambiguous = map[string]bool{"may": true, "march": true, "mars": true, "august": true}

var before = map[string]bool{"in": true, "of": true, "since": true, "during": true, "until": true, "last": true, "im": true, "en": true, "de": true, "early": true, "late": true, "mid": true}

// maxDated is the number of bytes of a question to search for dates.
const maxDated = 2048

// datesIn returns the times that a question of the time now names.
func datesIn(text string, now time.Time) (d dates) {
	words := strings.FieldsFunc(strings.ToLower(text[:min(len(text), maxDated)]), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) && !unicode.IsMark(r) })
	d.spans = append(spansIn(words, now.Local()), daysIn(text[:min(len(text), maxDated)])...)
	d.former = asksFormer(words)
	for i, w := range words {
		m, ok := monthNames[w]
		if !ok {
			if n := numberAt(words, i); n >= 1990 && n < 2100 && len(w) == 4 {
				d.years = append(d.years, n)
			}
			continue
		}
		beside := false
		for _, j := range []int{i - 2, i - 1, i + 1} { // 7 May, 7th of May, May 7
			if n := numberAt(words, j); n >= 1 && n <= 31 {
				d.days[n], beside = true, true
			}
		}
		if ambiguous[w] && !beside && numberAt(words, i+1) < 1990 && (i == 0 || !before[words[i-1]]) {
			continue
		}
		d.months[m], d.month = true, true
	}
	return d
}

// fit returns the factor for a message of a day; 1 if the question names no time.
func (d *dates) fit(n *Numbers, day int32) float64 {
	if !d.month && len(d.years)+len(d.spans) == 0 {
		return 1
	}
	said, f := startOf(day), 1.0
	if d.month && d.months[said.Month()] {
		f *= n.OnDate
		if d.days[said.Day()] {
			f *= n.OnDate
		}
	}
	for _, y := range d.years {
		if said.Year() == y {
			f *= 1.5
		}
	}
	for i := range d.spans {
		if !said.Before(d.spans[i].from) && said.Before(d.spans[i].to) {
			return f * n.InSpan
		}
	}
	return f
}

// past reports whether a question names a past time.
func (d *dates) past(now time.Time) bool {
	return d.former || slices.ContainsFunc(d.windows(now), func(s span) bool { return !s.from.After(now) && (d.month || !s.to.After(now)) })
}

// windows returns the times that a question names. A month without a year is the latest one that
// has begun.
func (d *dates) windows(now time.Time) []span {
	now = now.Local()
	out, years := slices.Clone(d.spans), d.years
	if !d.month {
		for _, y := range years[:len(years)*int(bit(len(out) == 0))] {
			out = append(out, period(time.Date(y, 1, 1, 0, 0, 0, 0, time.UTC), 0, 0))
		}
		return out
	}
	for m := time.January; m <= time.December; m++ {
		if !d.months[m] {
			continue
		}
		of := years
		if len(of) == 0 {
			of = []int{now.Year() - int(bit(m > now.Month()))}
		}
		for _, y := range of {
			out = append(out, period(time.Date(y, m, 1, 0, 0, 0, 0, time.UTC), months, 0))
		}
	}
	return out
}

// during reports whether the validity of a fact, from a day until a time, meets a time that the question
// names, or whether the question names none.
func (d *dates) during(day int32, until, now time.Time) bool {
	all := d.windows(now)
	return len(all) == 0 || slices.ContainsFunc(all, func(s span) bool { return startOf(day).Before(s.to) && !startOf(dayOf(until)).Before(s.from) })
}
