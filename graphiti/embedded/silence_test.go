package embedded

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// chats stores turns of a person with a model, one conversation for each list.
func chats(t *testing.T, e *Store, conversations ...[]string) {
	t.Helper()
	for n, c := range conversations {
		for i, text := range c {
			role := graphiti.RoleUser
			if i%2 == 1 {
				role = graphiti.RoleAssistant
			}
			err := e.Write(t.Context(), "g", []graphiti.Row{{
				Name: fmt.Sprint(n, ".", i), Role: role, Text: text, Said: said.Add(time.Duration(100*n+i) * time.Minute),
				Source: fmt.Sprintf(`{"session":"%d"}`, n),
			}})
			must(t, err)
		}
	}
}

// strong returns the texts of the facts with a strength of at least answersWhere, without
// their speakers.
func strong(t *testing.T, e *Store, query string) (out []string) {
	t.Helper()
	facts, err := e.Search(t.Context(), []string{"g"}, query, 12)
	must(t, err)
	for _, f := range facts {
		if f.Strength >= answersWhere {
			out = append(out, f.Text[len(f.Said)+len(": "):])
		}
	}
	return out
}

const answersWhere = 0.18 // the default of recall.min_score

// TestScriptsWithoutSpacesAreFound checks that a search finds words in scripts without
// spaces, and words by their parts.
func TestScriptsWithoutSpacesAreFound(t *testing.T) {
	for _, tc := range []struct{ said, asked string }{
		{"私の猫の名前はミソです。", "猫の名前は何ですか?"},
		{"SvelteKitとSQLiteを使っています。", "SQLiteを使っていますか?"},
		{"我的猫叫米糕。", "我的猫叫什么?"},
		{"고양이 이름은 나비예요.", "고양이 이름이 뭐예요?"},
		{"แมวของฉันชื่อมิโซะ", "แมวของฉันชื่ออะไร"},
		{"Die Daten kommen vom DWD.", "Woher kommen die Wetterdaten?"},
		{"The function is getUserById.", "What does the user function do?"},
		{"The limit is 12,500 rows.", "Which limit has 12500 rows?"},
		{"My supervisor is Okafor.", "Who supervises me?"},
	} {
		e := openEmbedded(t)
		chats(t, e, []string{tc.said, "OK."}, []string{"The train to Porto was late.", "I see."})
		if got := strong(t, e, tc.asked); len(got) == 0 || got[0] != tc.said {
			t.Errorf("%q: found %q, want %q", tc.asked, got, tc.said)
		}
	}
}

// TestRoutineIsSilent checks that requests, their repetitions, a model's answers to them
// and frequent words find no strong facts.
func TestRoutineIsSilent(t *testing.T) {
	e := openEmbedded(t)
	var day []string
	for i, what := range []string{"parser", "login form", "mail sender", "job queue", "tooltip"} {
		day = append(day, "run the tests", fmt.Sprintf("All %d tests pass in %d ms.", 100+i, 300+i), "add logging to the "+what, "The "+what+" logs its start and its end.")
	}
	chats(t, e, []string{"We deploy on Tuesdays at ten.", "Noted."}, day)
	for _, request := range []string{"run the tests", "add logging to the search box", "continue", "ok thanks", "テストを実行して"} {
		if got := strong(t, e, request); got != nil {
			t.Errorf("%q: got strong facts %q, want none", request, got)
		}
	}
	if got := strong(t, e, "When do we deploy?"); !slices.Equal(got, []string{"We deploy on Tuesdays at ten."}) {
		t.Errorf("found %q", got)
	}
}

// TestQuestionsAskedAgainAreAnsweredAgain checks that a repeated question finds the same
// answer, because questions do not make a word common.
func TestQuestionsAskedAgainAreAnsweredAgain(t *testing.T) {
	e := openEmbedded(t)
	chats(t, e, []string{"The bastion is only reachable through WireGuard.", "OK."})
	first := strong(t, e, "How do I reach the bastion?")
	for n := range 8 {
		if err := e.Write(t.Context(), "g", []graphiti.Row{{Name: fmt.Sprint("again", n), Role: graphiti.RoleUser, Text: "How do I reach the bastion?", Said: said}}); err != nil {
			t.Fatal(err)
		}
	}
	if again := strong(t, e, "How do I reach the bastion?"); len(first) != 1 || !slices.Equal(first, again) {
		t.Errorf("first %q, then %q", first, again)
	}
}

// TestALongMessageIsShownByItsBestPassage checks that a search shows a long message by its
// best passage, and does not show its neighbors.
func TestALongMessageIsShownByItsBestPassage(t *testing.T) {
	e := openEmbedded(t)
	notes := strings.Repeat("Storms mask everything that shrimps do at dusk. ", 40) + "A HydroMoth costs 85 EUR. " + strings.Repeat("Boats at noon are louder than the reference tone. ", 40)
	chats(t, e, []string{"Outline please", "Here it is.", notes, "Here is a cleaned version.", "I always drink espresso", "Noted."})
	got := strong(t, e, "How much is a HydroMoth?")
	if len(got) != 1 || !strings.Contains(got[0], "85 EUR") || len(got[0]) > shownMax {
		t.Errorf("found %q", got)
	}
}

// TestShortenedMessageIsShownByItsBestPassage checks that a search shows a shortened
// message without the lines of its log, even if little of the message is left.
func TestShortenedMessageIsShownByItsBestPassage(t *testing.T) {
	e := openEmbedded(t)
	log := "2026-11-25T10:00:00 INFO worker 0 finished job 0\n2026-11-25T10:00:01 INFO worker 1 finished job 17\n" + graphiti.LinesOmitted
	chats(t, e, []string{log + "That is the log. The on-call phone of team Ibex is 5512.", "Noted.", "I always drink espresso", "Noted."})
	got := strong(t, e, "What is the on-call phone of team Ibex?")
	if len(got) != 1 || !strings.Contains(got[0], "5512") || strings.Contains(got[0], "INFO worker") {
		t.Errorf("found %q, want the phone without the log", got)
	}
}

// TestCorrectionsComeFirst checks that a correction of an answer is found before the old
// value, whatever its words and its language.
func TestCorrectionsComeFirst(t *testing.T) {
	for _, tc := range []struct {
		name                         string
		old, asked, correction, then string
	}{
		{"English", "We use MySQL 8 as the database.", "Which database does this project use?", "No, we moved to Postgres 16 yesterday.", "What database are we on?"},
		{"German", "Der Server läuft im Keller, Adresse 192.168.178.40.", "Unter welcher Adresse läuft der Server?", "Der ist umgezogen, jetzt 192.168.178.55.", "Welche Adresse hat der Server?"},
		{"Japanese", "無料プランの上限は一日30問です。", "無料プランでは一日何問まで解けますか?", "それは50問に増やしました。", "無料プランの一日の上限は何問ですか?"},
		{"Polish", "Wystawa otwiera się 6 czerwca.", "Kiedy otwiera się wystawa?", "Przesunęli na lipiec.", "Od kiedy jest otwarta wystawa?"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			e := openEmbedded(t)
			chats(t, e, []string{tc.old, "OK.", "run the tests", "They pass."}, []string{tc.asked, "As far as I know.", tc.correction, "Noted.", "run the tests", "They pass."})
			if got := strong(t, e, tc.then); len(got) == 0 || got[0] != tc.correction {
				t.Errorf("found %q, want %q first", got, tc.correction)
			}
		})
	}
}

// TestNoPrivateFallback checks that a question about its author finds no fact without a
// common word, and that a message that a person asked to remember is found like any other.
func TestNoPrivateFallback(t *testing.T) {
	e := openEmbedded(t)
	chats(t, e, []string{"I've moved to Graz.", "Nice.", "My daughter has epilepsy.", "Oh.", "Remember that my dentist is Dr. Varga.", "I will."})
	for query, want := range map[string][]string{
		"how do I mock a http server in go tests?": nil,
		"may I apply the plan?":                    nil,
		"Who is my dentist?":                       {"Remember that my dentist is Dr. Varga."},
	} {
		facts, err := e.Search(t.Context(), []string{"g"}, query, 12)
		must(t, err)
		var got []string
		for _, f := range facts {
			got = append(got, f.Text[len(f.Said)+len(": "):])
		}
		if !slices.Equal(got, want) {
			t.Errorf("Search(%q) = %q, want %q", query, got, want)
		}
		if len(want) > 0 && facts[0].Strength < answersWhere {
			t.Errorf("Search(%q): got strength %v, want at least %v", query, facts[0].Strength, answersWhere)
		}
	}
}

// TestNoCorrection checks that the next message of a conversation is no correction if it is
// a request or about another subject.
func TestNoCorrection(t *testing.T) {
	const key, asked = "The deploy key lives in kv/ci-runner.", "Where does the deploy key live?"
	for _, next := range []string{
		"great, now make the sidebar collapsible", "ok and sort the table by date", "what does this function do", "explain inflation to a child",
		"hm my plot is upside down", "alright, see you", "Schreib eine E-Mail an meinen Vermieter", "ahora haz la tabla más ancha", "次お願い",
	} {
		e := openEmbedded(t)
		chats(t, e, []string{key, "OK.", "thanks", "Sure."}, []string{asked, "In kv/ci-runner.", next, "Done."})
		if got := strong(t, e, "Where is the deploy key?"); !slices.Equal(got, []string{key}) {
			t.Errorf("after %q: got %q, want only %q", next, got, key)
		}
	}
}

// TestQuestionsAndRequestsAnswerNothing checks that neither an earlier question, with or
// without a question mark, nor an earlier request answers a question, unless the request
// has a value.
func TestQuestionsAndRequestsAnswerNothing(t *testing.T) {
	e := openEmbedded(t)
	chats(t, e, []string{
		"why does the upload fire twice", "An effect.", "how do i mock the serial port", "With a pipe.", "write a test for the parser", "Done.",
		"Add an alert when the disk of the node is 85% full", "Added.", "δείξε πώς δουλεύει ο εκτυπωτής;", "OK.",
	})
	for query, want := range map[string][]string{
		"why does the upload button flicker":    nil,
		"which serial port is it?":              nil,
		"Where are the parser tests?":           nil,
		"At what disk usage do we alert?":       {"Add an alert when the disk of the node is 85% full"},
		"write a test for the parser":           nil,
		"how do i mock the serial port":         nil,
		"πού είναι ο εκτυπωτής;":                nil,
		"why does the upload fire three times?": nil,
	} {
		if got := strong(t, e, query); !slices.Equal(got, want) {
			t.Errorf("asked %q: got %q, want %q", query, got, want)
		}
	}
}

// TestFactsOfOneFormAreFound checks that sentences that differ in one rare word are not
// routine, and that a message repeated again and again is.
func TestFactsOfOneFormAreFound(t *testing.T) {
	e := openEmbedded(t)
	var all [][]string
	for i, service := range []string{"billing", "search", "login", "export", "audit", "mail"} {
		all = append(all, []string{fmt.Sprintf("The %s service listens on port %d of the staging host.", service, 4000+i), "Noted."})
	}
	for range 6 {
		all = append(all, []string{"Please run the tests of the checkout module again.", "All pass."})
	}
	chats(t, e, all...)
	for query, want := range map[string][]string{
		"On which port does the login service listen?": {"The login service listens on port 4002 of the staging host."},
		"What is the port of the audit service?":       {"The audit service listens on port 4004 of the staging host."},
		"What do we know about the checkout module?":   nil,
		"Please run the tests of the checkout module.": nil,
	} {
		if got := strong(t, e, query); !slices.Equal(got, want) {
			t.Errorf("asked %q: found %q, want %q", query, got, want)
		}
	}
}

// TestNewestOfOneForm checks that the newest of several statements that differ in one plain word is
// found, however often the value changed.
func TestNewestOfOneForm(t *testing.T) {
	tools := []string{"ansible", "salt", "puppet", "chef", "helm", "kustomize", "nomad", "terraform"}
	for _, form := range []string{"We deploy with %s.", "My editor theme is %s.", "The production cluster is %s."} {
		for n := 2; n <= len(tools); n++ {
			e := openEmbedded(t)
			var all [][]string
			for i, tool := range tools[:n] {
				all = append(all, []string{fmt.Sprintf(form, tool), "Noted."}, []string{fmt.Sprintf("Rename the variable in module %c, please.", 'a'+i), "Done."})
			}
			chats(t, e, all...)
			query := map[string]string{"We": "What do we deploy with?", "My": "What is my editor theme?", "Th": "Which cluster is production?"}[form[:2]]
			if got := strong(t, e, query); len(got) == 0 || got[0] != fmt.Sprintf(form, tools[n-1]) {
				t.Errorf("%q with %d values: found %q, want the newest first", form, n, got)
			}
		}
	}
}

// TestRepeatedStatementIsFound checks that a statement that the person repeats in several
// conversations answers a question, once.
func TestRepeatedStatementIsFound(t *testing.T) {
	e := openEmbedded(t)
	var all [][]string
	for _, client := range []string{"Codex", "opencode", "Claude Code", "Gemini CLI"} {
		all = append(all, []string{"This is " + client + ". The staging database is called Miso. Remember it.", "Understood."})
	}
	chats(t, e, all...)
	if got := strong(t, e, "What is the staging database called?"); len(got) != 1 || !strings.Contains(got[0], "Miso") {
		t.Errorf("found %q, want the statement once", got)
	}
}

// TestNewestOfCorrectionsIsFound checks that the last of several corrections of a value in
// nearly the same words is found first.
func TestNewestOfCorrectionsIsFound(t *testing.T) {
	for _, form := range []string{"The staging database has moved now to port %d.", "Correction: the staging database listens on port %d."} {
		for _, changes := range []int{1, 2, 5, 20} {
			e := openEmbedded(t)
			chats(t, e, []string{"The staging database listens on port 6543."})
			for i := range changes {
				err := e.Write(t.Context(), "g", []graphiti.Row{{
					Name: fmt.Sprint("c", i), Role: graphiti.RoleUser, Text: fmt.Sprintf(form, 8000+i),
					Said: said.Add(time.Duration(100+i) * time.Minute), Source: fmt.Sprintf(`{"session":"c%d"}`, i),
				}})
				must(t, err)
			}
			want := fmt.Sprintf(form, 8000+changes-1)
			if got := strong(t, e, "On which port does the staging database listen?"); len(got) == 0 || got[0] != want {
				t.Errorf("after %d changes: got %q, want %q first", changes, got, want)
			}
		}
	}
}

// TestQuestionsDoNotOutrankTheirAnswer checks that the statement that answers a question is
// found, and no earlier question in its place. Earlier questions and requests share more
// words with the question, above all if they quote the same tool call.
func TestQuestionsDoNotOutrankTheirAnswer(t *testing.T) {
	calls := []string{
		`exec_command {"cmd":"echo forty-two"}`, `bash {"command":"echo forty-two","description":"counts"}`, `Bash {"command":"echo forty-two","description":"counts"}`,
		`run_shell_command {"command":"echo forty-two","description":"counts"}`,
	}
	const question = "What is the staging database called?"
	for name, ask := range map[string]func(call string) string{
		"before a call":       func(call string) string { return question + " Count first. [[tool " + call + "]]" },
		"after a call":        func(call string) string { return "Count first. [[tool " + call + "]]\n" + question },
		"quoted":              func(call string) string { return `"` + question + " Count first. [[tool " + call + `]]"` },
		"quoted and escaped":  func(call string) string { return strconv.Quote(question + " Count first. [[tool " + call + "]]") },
		"quoted within":       func(call string) string { return `they asked "` + question + `" Count first. [[tool ` + call + "]]" },
		"after a greeting":    func(call string) string { return "Hello there, " + question + " Count first. [[tool " + call + "]]" },
		"with a call of many": func(call string) string { return question + strings.Repeat(" Count first. [[tool "+call+"]]", 3) },
	} {
		t.Run(name, func(t *testing.T) {
			var said [][]string
			for _, who := range []string{"Codex", `"opencode`, "Claude Code", "Gemini CLI"} {
				said = append(said, []string{"This is " + who + ". The staging database is called Miso. Remember it.", "Understood."})
			}
			said = append(said, []string{question + " Count first. [[tool " + calls[0] + "]]", "It is called Miso.", "And which port does it listen on?", "It is called Miso."})
			for _, call := range calls[1:] {
				e := openEmbedded(t)
				chats(t, e, said...)
				got := strong(t, e, ask(call))
				if len(got) == 0 || !strings.Contains(got[0], "The staging database is called Miso.") {
					t.Errorf("%s: found %q, want the statement first", ask(call), got)
				}
				said = append(said, []string{ask(call), "Understood.", "And which port does it listen on?", "It is called Miso."})
			}
		})
	}
}

// TestOneLetterNames checks that a letter, a number or both name a thing: its statement is found,
// and no other row of the same table.
func TestOneLetterNames(t *testing.T) {
	for _, tc := range []struct {
		said, asked string
		names       []string
	}{
		{"Shelf %s holds %d jars.", "How many jars does shelf %s hold?", strings.Split("ABCDEFGH", "")},
		{"shelf %s holds %d jars", "how many jars does shelf %s hold?", strings.Split("bcdefghk", "")},
		{"Vitamin %s: I take %d drops.", "How many drops of vitamin %s do I take?", strings.Split("BCDK", "")},
		{"Team %s meets in hall %d.", "In which hall does team %s meet?", strings.Split("ABCDEF", "")},
		{"Gate %s opens at minute %d.", "At which minute does gate %s open?", []string{"A1", "A2", "B1", "B2"}},
		{"Locker %s holds %d coats.", "How many coats does locker %s hold?", strings.Split("12345678", "")},
		{"Das Regal %s hat %d Fächer.", "Wie viele Fächer hat das Regal %s?", strings.Split("ABCDE", "")},
		{"L'étagère %s porte %d bocaux.", "Combien de bocaux porte l'étagère %s ?", strings.Split("ABCDE", "")},
	} {
		e := openEmbedded(t)
		var all [][]string
		for i, name := range tc.names {
			all = append(all, []string{fmt.Sprintf(tc.said, name, 20+i), "Noted."})
		}
		chats(t, e, all...)
		for i, name := range tc.names {
			want := []string{fmt.Sprintf(tc.said, name, 20+i)}
			if got := strong(t, e, fmt.Sprintf(tc.asked, name)); !slices.Equal(got, want) {
				t.Errorf("%s: got %q, want %q", name, got, want)
			}
		}
	}
}
