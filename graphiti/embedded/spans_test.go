package embedded

import (
	"testing"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti/words"
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

func TestWhatStatesNothing(t *testing.T) {
	for text, want := range map[string]bool{
		"Which port does staging use?":                 true,
		"Hi! Which port does staging use?":             true,
		"Which port? And which host?":                  true,
		"Thanks. And which host?":                      true,
		"Staging is slow. Which port does it use?":     false,
		"The port is 6543.":                            false,
		"I moved to v1.2 of Redis, is that all right?": true,
		"We meet on Friday.\nWhich room was it?":       false,
		"我的猫叫咪咪。它吃什么？":                                 false,
		"私の猫はミケです！何を食べますか。":                            false,
		"قطتي اسمها ميمي. ماذا تأكل؟":                  false,
		"मेरी बिल्ली का नाम मिमी है। वह क्या खाती है?": false,
		"猫叫什么？它吃什么？":         true,
		"猫の名前は何ですか。何を食べますか。": true,
		"": false,
	} {
		if got := words.OnlyAsks(text); got != want {
			t.Errorf("%q states nothing: %v", text, got)
		}
	}
}

// TestAcknowledgementsAreNotShown checks that acknowledgments are not shown next to a
// statement.
func TestAcknowledgementsAreNotShown(t *testing.T) {
	e := openEmbedded(t)
	talk(t, e, "a", time.Date(2026, 1, 5, 9, 0, 0, 0, time.UTC), "Ann", "The staging database has port 6543.", "Bob", "Noted!",
		"Ann", "Hello! Which port was it?", "Bob", "Sure, understood.")
	got := search(t, e, "g", "Which port has the staging database?")
	if len(got) != 1 || got[0] != "Ann, 2026-01-05: The staging database has port 6543." {
		t.Errorf("found %q", got)
	}
}

// TestWhoAsksWhen checks that a question about a time finds the message with a time first.
func TestWhoAsksWhen(t *testing.T) {
	e := openEmbedded(t)
	day := time.Date(2026, 1, 5, 9, 0, 0, 0, time.UTC)
	talk(t, e, "a", day, "Ann", "I climbed the tower on Friday with Bob and it was a fine view.")
	talk(t, e, "b", day.AddDate(0, 0, 1), "Ann", "I climbed the tower alone and it was a fine view too.")
	if got := search(t, e, "g", "When did Ann climb the tower?"); len(got) != 2 || got[0] != "Ann, 2026-01-05: I climbed the tower on Friday with Bob and it was a fine view." {
		t.Errorf("found %q", got)
	}
}
