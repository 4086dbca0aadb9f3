package embedded

import (
	"testing"
	"time"
)

func TestRelativeDates(t *testing.T) {
	now := time.Date(2026, 11, 18, 15, 0, 0, 0, time.UTC) // a Wednesday
	for _, tc := range []struct {
		asked   string
		in, out string // a day in the span and a day outside it; "" for neither
	}{
		{"What did we decide last week?", "2026-11-11", "2026-11-18"},
		{"What did we decide this week?", "2026-11-17", "2026-11-11"},
		{"What did I do yesterday?", "2026-11-17", "2026-11-16"},
		{"Where was I last month?", "2026-10-31", "2026-11-01"},
		{"Where was I last year?", "2025-03-01", "2026-03-01"},
		{"What broke three days ago?", "2026-11-15", "2026-11-11"},
		{"What broke 2 weeks ago?", "2026-11-03", "2026-11-17"},
		{"What broke a couple of weeks ago?", "", "2026-11-17"},
		{"Was haben wir vor zwei Monaten beschlossen?", "2026-09-20", "2026-11-01"},
		{"Was haben wir letzte Woche beschlossen?", "2026-11-12", "2026-11-18"},
		{"Was war gestern?", "2026-11-17", "2026-11-15"},
		{"Qu'avons-nous décidé la semaine dernière ?", "2026-11-11", "2026-11-18"},
		{"Qu'avons-nous décidé il y a 3 jours ?", "2026-11-15", "2026-11-10"},
		{"¿Qué decidimos hace dos semanas?", "2026-11-04", "2026-11-17"},
		{"¿Qué decidimos la semana pasada?", "2026-11-12", "2026-11-18"},
		{"Qu'avons-nous mangé hier ?", "2026-11-17", "2026-11-16"},
		{"Was haben wir hier gegessen?", "", "2026-11-17"},
		{"昨日は何を塗りましたか？", "2026-11-17", "2026-11-16"},
		{"How long is a week of five days?", "", "2026-11-11"},
	} {
		d := datesIn(tc.asked, now)
		for _, day := range []string{tc.in, tc.out} {
			if day == "" {
				continue
			}
			said, err := time.Parse(time.DateOnly, day)
			if err != nil {
				t.Fatal(err)
			}
			if raised := d.fit(&Fitted, dayOf(said.Add(12*time.Hour))) > 1; raised != (day == tc.in) {
				t.Errorf("%q: %s counts for more: %v", tc.asked, day, raised)
			}
		}
	}
}
