package embedded

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// TestEndIn checks the last day that a message names, each form with a text that names none.
func TestEndIn(t *testing.T) {
	said := time.Date(2026, 11, 20, 10, 0, 0, 0, time.Local)
	for text, want := range map[string]string{
		"on call until 27 November is Baraka":                "2026-11-27",
		"on call till November 27th: Baraka":                 "2026-11-27",
		"Bis zum 27. November hat Baraka Bereitschaft.":      "2026-11-27",
		"Der Gutschein gilt bis 25.11.":                      "2026-11-25",
		"Der Gutschein gilt bis zum 25.":                     "2026-11-25",
		"the voucher is good until the 25th":                 "2026-11-25",
		"the voucher is good until the 3rd":                  "2026-12-03",
		"le bon est valable jusqu'au 25 novembre":            "2026-11-25",
		"le bon est valable jusqu'au 25":                     "2026-11-25",
		"el cupón vale hasta el 5 de enero":                  "2027-01-05",
		"vigente hasta el 2026-12-01":                        "2026-12-01",
		"buono valido fino al 25/11":                         "2026-11-25",
		"промокод действует до 25.11.2026":                   "2026-11-25",
		"η προσφορά ισχύει έως 25.11":                        "2026-11-25",
		"クーポンは11月25日まで有効":                                    "2026-11-25",
		"优惠券到12月3日有效":                                        "2026-12-03",
		"쿠폰은 11월 25일까지 써요":                                   "2026-11-25",
		"until Friday the 27th the office in Graz is closed": "2026-11-27",
		"open until 5":                               "",
		"hasta las 5 estoy en la oficina":            "",
		"We moved on 27 November.":                   "",
		"the meeting on 27 November goes until noon": "",
		"Bis 18 Uhr ist offen.":                      "",
		"we do 27 builds a day":                      "",
		"valid until 11/12":                          "",
	} {
		got := ""
		if end := endIn(text, said); !end.IsZero() {
			got = end.Format(time.DateOnly)
		}
		if got != want {
			t.Errorf("endIn(%q) = %q, want %q", text, got, want)
		}
	}
}

// TestEnded checks that a search gives the end of a message, and no fact after its last day.
func TestEnded(t *testing.T) {
	for _, days := range []int{-3, 3} {
		e := openEmbedded(t)
		day := time.Now().AddDate(0, 0, days)
		row := graphiti.Row{Name: "m", Role: graphiti.RoleUser, Text: "Baraka is on call until " + day.Format(time.DateOnly) + ".", Said: day.AddDate(0, 0, -7)}
		must(t, e.Write(t.Context(), "g", []graphiti.Row{row}))
		facts, err := e.Search(t.Context(), []string{"g"}, "Who is on call?", 5)
		if err != nil || len(facts) != 1 || facts[0].InvalidAt.Before(time.Now()) != (days < 0) {
			t.Errorf("%d days: got %+v, %v", days, facts, err)
		}
	}
	e := openDistilled(t)
	say(t, e, "g", "1", "Baraka does it", "Noted.")
	distil(t, e, graphiti.Distilled{Text: "Baraka is on call for payments", Kind: "person", Until: time.Now().Add(-time.Second)})
	if got := strong(t, e, "Who is on call for payments?"); len(got) != 0 {
		t.Errorf("found %q after its end", got)
	}
}

// TestReturnedValue checks that the newest statement is first if a value comes back.
func TestReturnedValue(t *testing.T) {
	for _, form := range []string{"The theme is %s.", "we use the theme %s now", "Das Thema ist jetzt %s."} {
		e := openEmbedded(t)
		var all [][]string
		for _, value := range []string{"Amber", "Cobalt", "Amber"} {
			all = append(all, []string{fmt.Sprintf(form, value), "Noted."})
		}
		chats(t, e, all...)
		want := fmt.Sprintf(form, "Amber")
		if got := strong(t, e, "Which theme? Welches Thema?"); len(got) == 0 || got[0] != want || slices.Contains(got[1:], want) {
			t.Errorf("got %q, want %q first, and once", got, want)
		}
	}
}
