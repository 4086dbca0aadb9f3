package embedded

import (
	"strings"
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
		{"Vilken port hade vi förra veckan?", "2026-11-11", "2026-11-18"},
		{"Jaki port mieliśmy w zeszłym miesiącu?", "2026-10-31", "2026-11-01"},
		{"Какой порт у нас был в прошлом году?", "2025-03-01", "2026-03-01"},
		{"Что мы решили два месяца назад?", "2026-09-20", "2026-11-01"},
		{"Geçen ay hangi portu kullandık?", "2026-10-31", "2026-11-01"},
		{"지난달에는 어떤 포트였지?", "2026-10-31", "2026-11-01"},
		{"上个月用的是哪个端口？", "2026-10-31", "2026-11-01"},
		{"先週はどのポートでしたか？", "2026-11-11", "2026-11-18"},
		{"เดือนที่แล้วใช้พอร์ตไหน", "2026-10-31", "2026-11-01"},
		{"ما المنفذ الذي استخدمناه الشهر الماضي؟", "2026-10-31", "2026-11-01"},
		{"पिछले महीने कौन सा पोर्ट था?", "2026-10-31", "2026-11-01"},
		{"How long is a week of five days?", "", "2026-11-11"},
	} {
		d := datesIn(tc.asked, now)
		for _, day := range []string{tc.in, tc.out} {
			if day == "" {
				continue
			}
			said, err := time.Parse(time.DateOnly, day)
			must(t, err)
			if raised := d.fit(&Fitted, dayOf(said.Add(12*time.Hour))) > 1; raised != (day == tc.in) {
				t.Errorf("%q: %s counts for more: %v", tc.asked, day, raised)
			}
		}
	}
}

// TestPast_Weeks checks that on each day, last week is past, and this week is not.
func TestPast_Weeks(t *testing.T) {
	for n := range 7 {
		now := time.Date(2026, 11, 16+n, 3, 0, 0, 0, time.Local)
		for which, want := range map[string]bool{"last": true, "this": false} {
			d := datesIn("Which port did we have "+which+" week?", now)
			if got := d.past(now); got != want {
				t.Errorf("on %s, %s week: past = %v, want %v", now.Weekday(), which, got, want)
			}
		}
	}
}

// TestPast checks which questions are about the past, and at which days.
func TestPast(t *testing.T) {
	now := time.Date(2026, 11, 18, 15, 0, 0, 0, time.Local)
	for _, tc := range []struct {
		asked   string
		in, out string // an end of a fact that began the day before; "" for neither
		past    bool
	}{
		{"In 2025, who was the coach?", "2025-06-01", "2024-06-01", true},
		{"Who was on call on 2026-11-02?", "2026-11-02", "2026-11-05", true},
		{"Wer hatte am 2.11.2026 Bereitschaft?", "2026-11-02", "2026-11-05", true},
		{"Where did the office sit in August?", "2026-08-10", "2026-10-10", true},
		{"Where did the office sit in August 2025?", "2025-08-10", "2026-08-10", true},
		{"Who was the coach before Porto?", "2026-08-10", "", true},
		{"Which port did the archive server use to have?", "2026-08-10", "", true},
		{"Who is my previous coach?", "2026-08-10", "", true},
		{"Wer war letzten Monat mein Trainer?", "2026-10-10", "2026-08-10", true},
		{"पहले कोच कौन था?", "2026-08-10", "", true},
		{"Wer war mein früherer Trainer?", "2026-08-10", "", true},
		{"¿Quién era el entrenador anterior?", "2026-08-10", "", true},
		{"Who is the coach?", "", "", false},
		{"What must I run before I deploy?", "", "", false},
		{"What is planned for 2027?", "", "", false},
		{"Does the build use Go 1.26.8?", "", "", false},
	} {
		d := datesIn(tc.asked, now)
		if got := d.past(now); got != tc.past {
			t.Errorf("%q: about the past %v", tc.asked, got)
		}
		for _, day := range []string{tc.in, tc.out} {
			if day == "" {
				continue
			}
			end, err := time.ParseInLocation(time.DateOnly, day, time.Local)
			must(t, err)
			if got := d.during(dayOf(end)-1, end, now); got != (day == tc.in) {
				t.Errorf("%q: so until %s: %v", tc.asked, day, got)
			}
		}
	}
}

// TestDaysAreLocal: a line has the person's day.
func TestDaysAreLocal(t *testing.T) {
	before := time.Local
	t.Cleanup(func() { time.Local = before })
	for zone, hours := range map[string]int{"Shanghai": 8, "Los Angeles": -8, "Auckland": 13} {
		time.Local = time.FixedZone(zone, hours*3600)
		now := time.Now()
		midnight := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, time.Local)
		for _, at := range []time.Time{midnight.Add(-23 * time.Hour), midnight.Add(-time.Hour)} {
			h := hit{row: &row{role: "user", content: "We ate soup.", said: at}}
			if got, want := h.fact("g").Text, at.Format(time.DateOnly); !strings.Contains(got, want) {
				t.Errorf("%s: %q, want the day %s", zone, got, want)
			}
		}
	}
}
