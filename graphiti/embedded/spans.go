package embedded

import (
	"strconv"
	"strings"
	"time"
)

// span is a time that a question names, relative to the time of the question.
type span struct{ from, to time.Time }

// asksWhen has the first words of questions for a time.
var asksWhen = set("when wann quand cuándo quando wanneer")

// timeWords has the words for past and future times.
var timeWords = set(`yesterday today tonight tomorrow last next ago week weeks weekend month months year years day days
	monday tuesday wednesday thursday friday saturday sunday january february march april june july august september
	october november december recently earlier
	gestern heute morgen vorgestern letzte letzten nächste nächsten woche wochen wochenende monat monaten jahr jahren tagen
	montag dienstag mittwoch donnerstag freitag samstag sonntag
	hier aujourd demain dernier dernière prochain prochaine semaine semaines mois ans jours lundi mardi mercredi jeudi vendredi samedi dimanche
	ayer hoy mañana pasado pasada próximo próxima semana semanas mes meses año años días lunes martes miércoles jueves viernes sábado domingo
	ieri oggi domani scorso scorsa settimana mese mesi anno anni giorni ontem hoje amanhã passado passada ano anos dias
	gisteren vandaag morgen vorige volgende maand maanden jaar dagen`)

// The words of relative dates. A number precedes its unit, and a word such as "ago" follows
// the unit or precedes the number.
var (
	units = numbered("", "day days tag tage tagen jour jours día días giorno giorni dia dias dag dagen",
		"week weeks woche wochen semaine semaines semana semanas settimana settimane weken",
		"month months monat monate monaten mois mes meses mese mesi mês maand maanden",
		"year years jahr jahre jahren an ans année año años anno anni ano anos jaar jaren")
	numbers = numbered("", "a one einem einer ein eine un une una um uma een", "two couple zwei deux dos due dois duas twee",
		"three drei trois tres tre três drie", "four vier quatre cuatro quattro quatro", "five fünf cinq cinco cinque vijf", "six sechs seis sei zes")
	pastDays = numbered("today heute hoy oggi hoje vandaag", "yesterday gestern ayer ieri ontem gisteren", "vorgestern anteayer eergisteren")

	theLast  = set("last past previous letzte letzten letztes letzter vergangene vergangenen dernier dernière pasado pasada scorso scorsa passado passada vorige afgelopen")
	this     = set("this diese diesen dieses cette este esta questa questo deze dit")
	agoAfter = set("ago fa geleden atrás")
	agoFirst = set("vor hace há a")
)

// The numbers of units.
const (
	days = iota + 1
	weeks
	months
	_ // years
)

// numbered maps the words of each list to the list's number.
func numbered(lists ...string) map[string]int {
	m := make(map[string]int)
	for n, words := range lists {
		for w := range strings.FieldsSeq(words) {
			m[w] = n
		}
	}
	return m
}

func set(words string) map[string]bool {
	m := make(map[string]bool)
	for w := range strings.FieldsSeq(words) {
		m[w] = true
	}
	return m
}

// spansIn returns the times that a question names: "last week", "three days ago". A vague
// time includes a margin.
func spansIn(words []string, now time.Time) (out []span) {
	today := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, time.UTC)
	at := func(i int) string {
		if i < 0 || i >= len(words) {
			return ""
		}
		return words[i]
	}
	for i, w := range words {
		if n, ok := pastDays[w]; ok {
			out = append(out, span{today.AddDate(0, 0, -n), today.AddDate(0, 0, 1-n)})
			continue
		}
		unit, ok := units[w]
		if !ok {
			continue
		}
		n, err := strconv.Atoi(at(i - 1))
		if err != nil {
			n = numbers[at(i-1)]
		}
		switch {
		case n > 0 && n < 1000 && (agoAfter[at(i+1)] || agoFirst[at(i-2)]):
			out = append(out, ago(today, n, unit))
		case unit == days:
		case theLast[at(i-1)] || theLast[at(i+1)]:
			out = append(out, period(today, unit, -1))
		case this[at(i-1)]:
			out = append(out, period(today, unit, 0))
		}
	}
	return out
}

// ago returns the time n units before a day, with a margin.
func ago(day time.Time, n int, unit int) span {
	switch unit {
	case days:
		return span{day.AddDate(0, 0, -n-1), day.AddDate(0, 0, 2-n)}
	case weeks:
		return span{day.AddDate(0, 0, -7*n-4), day.AddDate(0, 0, -7*n+5)}
	case months:
		return span{day.AddDate(0, -n, -16), day.AddDate(0, -n, 16)}
	}
	// Years.
	return span{day.AddDate(-n, -6, 0), day.AddDate(-n, 6, 0)}
}

// period returns the calendar week, month or year of a day, which units later. A week
// includes a day before and after it.
func period(day time.Time, unit int, which int) span {
	switch unit {
	case weeks:
		monday := day.AddDate(0, 0, -(int(day.Weekday())+6)%7+7*which)
		return span{monday.AddDate(0, 0, -1), monday.AddDate(0, 0, 8)}
	case months:
		first := day.AddDate(0, 0, 1-day.Day()).AddDate(0, which, 0)
		return span{first, first.AddDate(0, 1, 0)}
	}
	// A year.
	first := time.Date(day.Year()+which, 1, 1, 0, 0, 0, 0, time.UTC)
	return span{first, first.AddDate(1, 0, 0)}
}

// raise raises the messages that name a time, if the question asks for one.
func (d *dates) raise(n *Numbers, hits []*hit) {
	if !d.when {
		return
	}
	best := 0.0
	for _, h := range hits {
		best = max(best, h.score)
	}
	for _, h := range hits {
		if h.score*n.TellsWhen >= n.Marginal*best && h.note.Flags&isOfTime != 0 {
			h.score *= n.TellsWhen
		}
	}
}
