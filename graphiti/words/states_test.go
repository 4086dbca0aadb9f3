package words

import (
	"slices"
	"testing"
)

// TestStates checks statements of each kind, and similar texts that are not statements.
func TestStates(t *testing.T) {
	for text, want := range map[string]bool{
		"We use Postgres 16.":                    true,
		"invitations go out through Mailjet":     true,
		"so, it is done: Tampere is home now":    true,
		"Make it 10 days, they asked for it.":    true, // a value
		"Always write comments in German.":       true, // a rule
		"Do not touch the generated files.":      true,
		"Write a test. Money is always cents.":   true,
		"Remember that my dentist is Dr. Varga.": true,
		"Merk dir, dass ich Linz mag.":           true,
		"私の歯医者はヴァルガ先生だと覚えておいてください":               true,
		"コミットメッセージは必ず日本語で書いてください":                true,
		"请记住我的牙医是瓦尔加":                            true,
		"mình thu người chạy mười phần trăm":     true, // not in the table

		"Write a haiku about autumn":               false,
		"explain inflation to a child":             false,
		"great, now make the sidebar collapsible":  false,
		"ok, next remove the old importer":         false,
		"can you make the parser faster":           false,
		"bitte räum das auf":                       false,
		"Schreib eine Mail an den Vermieter":       false,
		"añade una prueba":                         false,
		"поправь тест":                             false,
		"テストを書いて":                                  false,
		"帮我写一个测试":                                  false,
		"테스트를 추가해줘":                                false,
		"who is my dentist":                        false,
		"how do i get wax out of a tablecloth":     false,
		"μέχρι τι ώρα είναι ανοιχτά;":              false,
		"alright, see you":                         false,
		"ok thanks":                                false,
		"":                                         false,
		"Is it on? Run the tests.":                 false,
		"danke":                                    false,
		"what did you just change":                 false,
		"do cats dream":                            false,
		"write the importer for the other scanner": false,
	} {
		if got := States(text); got != want {
			t.Errorf("States(%q) = %v, want %v", text, got, want)
		}
	}
}

func TestChanges(t *testing.T) {
	for text, want := range map[string]bool{
		"We moved to Postgres 16.":       true,
		"It was extended to 30 April.":   true,
		"jetzt 192.168.178.55":           true,
		"ahora enviamos los miércoles":   true,
		"今月からミナトさんに代わりました":               true,
		"теперь это делает Анна":         true,
		"We use Postgres.":               false,
		"Der Server steht im Keller.":    false,
		"The summer concert is in June.": false,
	} {
		if got := Changes(text); got != want {
			t.Errorf("Changes(%q) = %v, want %v", text, got, want)
		}
	}
}

// TestPersonal_OneWord checks that a single word does not decide the language: "mein" is
// German and Hindi.
func TestPersonal_OneWord(t *testing.T) {
	for text, want := range map[string]bool{
		"tum mein git rebase kaise samjhaoge aaj": false,
		"office mein server restart kab hua tha":  false,
		"mein Server läuft nicht":                 true,
		"mein Hund":                               true,
		"is my server down":                       true,
	} {
		if got := Personal(text); got != want {
			t.Errorf("Personal(%q) = %v, want %v", text, got, want)
		}
	}
}

func TestSentences(t *testing.T) {
	for text, want := range map[string][]string{
		"My dentist is Dr. Varga. He is good.": {"My dentist is Dr. Varga.", "He is good."},
		"It is v1.2 in main.go. OK":            {"It is v1.2 in main.go.", "OK"},
		"Use tabs, e.g. here! Why?":            {"Use tabs, e.g. here!", "Why?"},
		"My locker is no. 5 now. Which one?!":  {"My locker is no. 5 now.", "Which one?!"},
		"Wait... it is on.":                    {"Wait... it is on."},
		"一つ目です。二つ目です":                          {"一つ目です。", "二つ目です"},
		" \n ":                                 nil,
	} {
		if got := slices.Collect(Sentences(text)); !slices.Equal(got, want) {
			t.Errorf("Sentences(%q) = %q, want %q", text, got, want)
		}
	}
}
