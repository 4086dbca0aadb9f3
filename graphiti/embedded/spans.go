package embedded

import (
	"cmp"
	"slices"
	"strings"
	"time"
	"unicode"
)

// span is a time that a question names, relative to the time of the question.
type span struct{ from, to time.Time }

// The words of relative dates. A number precedes its unit, and a word such as "ago" follows
// the unit or precedes the number.
var (
	units = numbered("", "day days tag tage tagen jour jours día días giorno giorni dia dias dag dagen dagar dni дня дней gün दिन",
		"week weeks woche wochen semaine semaines semana semanas settimana settimane weken vecka veckan veckor tydzień tygodnia tygodniu tygodnie tygodni неделя неделю неделе недели недель hafta أسبوع الأسبوع أسابيع हफ्ते हफ़्ते सप्ताह",
		"month months monat monate monaten mois mes meses mese mesi mês maand maanden månad månaden månader miesiąc miesiąca miesiącu miesiące miesięcy месяц месяца месяце месяцев ay شهر الشهر أشهر महीना महीने माह",
		"year years jahr jahre jahren an ans année año años anno anni ano anos jaar jaren år året rok roku lata lat год года году лет yıl sene سنة السنة عام العام سنوات साल वर्ष")
	numbers = numbered("", "a one einem einer ein eine un une una um uma een en ett bir एक", "two couple zwei deux dos due dois duas twee två dwa dwie два две iki दो",
		"three drei trois tres tre três drie trzy три üç तीन", "four vier quatre cuatro quattro quatro fyra cztery четыре dört चार", "five fünf cinq cinco cinque vijf fem pięć пять beş पांच", "six sechs seis sei zes sex sześć шесть altı छह")
	pastDays = numbered("today heute hoy oggi hoje vandaag idag dziś dzisiaj сегодня bugün اليوم", "yesterday gestern hier ayer ieri ontem gisteren igår wczoraj вчера dün أمس", "vorgestern anteayer eergisteren")

	// lastUnspaced has words that no space parts from others.
	lastUnspaced = numbered("", "昨日 昨天 어제 เมื่อวาน", "上周 上週 上星期 先週 지난주 สัปดาห์ที่แล้ว อาทิตย์ที่แล้ว", "上月 上个月 上個月 先月 지난달 เดือนที่แล้ว", "去年 昨年 작년 지난해 ปีที่แล้ว")
	french       = set("nous vous j ai avons avez qu que est était")

	theLast  = set("last past previous letzte letzten letztes letzter vergangene vergangenen dernier dernière pasado pasada scorso scorsa passado passada vorige afgelopen förra senaste zeszły zeszłym zeszłego ubiegły ubiegłym ubiegłego прошлый прошлая прошлой прошлую прошлом прошлого geçen الماضي الماضية पिछले पिछला पिछली")
	this     = set("this diese diesen dieses cette este esta questa questo deze dit")
	agoAfter = set("ago fa geleden atrás sedan temu назад önce पहले")
	agoFirst = set("vor hace há a")

	// Words for an earlier state without a date: "the previous coach"; "before Porto", if the verb is in the past tense.
	formerly = set("previous previously former formerly earlier vorheriger vorherige vorherigen vorheriges vorher früher frühere früheren früherer früheres ehemalige ehemaligen ehemaliger damals zuvor précédent précédente précédemment ancien ancienne auparavant autrefois anterior anteriores anteriormente antiguo antigua precedente precedentemente antigo antiga vroeger vroegere vorige voorheen eerder tidigare förra tidligere aiempi aiemmin poprzedni poprzednia wcześniej раньше прежний прежняя предыдущий раніше попередній předchozí dříve önceki eskiden sebelumnya dulu trước سابقا السابق לשעבר הקודם पहले 이전 예전에 以前 之前")
	earlier  = set("before bevor vor avant antes prima voor före før ennen przed до перед před önce sebelum trước قبل לפני 전에")
	wasSo    = set("was were did had war waren hatte hatten était étaient avait fue era eran eram foi aveva erano had hadden var hade havde oli był była było был была было byl byla vardı idi كان היה था थी थे")
)

// asksFormer reports whether a question asks for an earlier state without a date.
func asksFormer(words []string) bool {
	was := slices.ContainsFunc(words, func(w string) bool { return wasSo[w] })
	for i, w := range words {
		if formerly[w] || (w == "use" && was || w == "used") && wordAt(words, i+1) == "to" || was && earlier[w] || strings.Contains(w, "以前") || strings.Contains(w, "之前") {
			return true
		}
	}
	return false
}

// daysIn returns the days that a text names with numbers and their year.
func daysIn(text string) (out []span) {
	for w := range strings.FieldsSeq(text) {
		w = strings.TrimFunc(w, func(r rune) bool { return !unicode.IsNumber(r) })
		if end := dateAt([]string{w}, false, time.Now()); strings.Count(w, "-")+strings.Count(w, ".")+strings.Count(w, "/") == 2 && end.Year() >= 1990 {
			day := startOf(dayOf(end))
			out = append(out, span{day, day.AddDate(0, 0, 1)})
		}
	}
	return out
}

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
	for i, w := range words {
		for last, unit := range lastUnspaced {
			if strings.Contains(w, last) {
				out = append(out, period(today, unit, -1))
			}
		}
		n, ok := pastDays[w]
		if ok && (w != "hier" || slices.ContainsFunc(words, func(w string) bool { return french[w] })) { // German: here
			out = append(out, period(today, days, -n))
			continue
		}
		unit, ok := units[w]
		if !ok {
			continue
		}
		n = cmp.Or(number(wordAt(words, i-1)), numbers[wordAt(words, i-1)])
		switch {
		case n > 0 && n < 1000 && (agoAfter[wordAt(words, i+1)] || agoFirst[wordAt(words, i-2)]):
			out = append(out, ago(today, n, unit))
		case unit == days:
		case theLast[wordAt(words, i-1)] || theLast[wordAt(words, i+1)]:
			out = append(out, period(today, unit, -1))
		case this[wordAt(words, i-1)]:
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

// period returns the calendar day, week, month or year of a day, which units later. A week
// includes a day before and after it.
func period(day time.Time, unit int, which int) span {
	switch unit {
	case days:
		return span{day.AddDate(0, 0, which), day.AddDate(0, 0, which+1)}
	case weeks:
		monday := day.AddDate(0, 0, -(int(day.Weekday())+6)%7+7*which)
		return span{monday.AddDate(0, 0, -1), monday.AddDate(0, 0, 7)}
	case months:
		first := day.AddDate(0, 0, 1-day.Day()).AddDate(0, which, 0)
		return span{first, first.AddDate(0, 1, 0)}
	}
	// A year.
	first := time.Date(day.Year()+which, 1, 1, 0, 0, 0, 0, time.UTC)
	return span{first, first.AddDate(1, 0, 0)}
}
