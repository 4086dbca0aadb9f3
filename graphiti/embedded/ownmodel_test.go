package embedded

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/internal/helptest"
	"github.com/graphiti-proxy/graphiti-proxy/internal/sentence"
)

// ownEncoder returns the encoder of the built-in model.
func ownEncoder(t *testing.T) encoder {
	t.Helper()
	m, err := sentence.Load()
	must(t, err)
	return encoderOf(m, FitOf(m.Name()))
}

// understand gives a store the built-in model.
func understand(t *testing.T, e *Store) {
	t.Helper()
	m, err := sentence.Load()
	must(t, err)
	e.Understand(m, FitOf(m.Name()), slog.New(slog.DiscardHandler))
}

// TestMayState checks that the gate tells decisions from requests and questions that have a word of
// change.
func TestMayState(t *testing.T) {
	e := openEmbedded(t)
	understand(t, e)
	for text, want := range map[string]bool{
		"No, we moved to Postgres 16 yesterday.":      true,
		"Der ist umgezogen, jetzt 192.168.178.55.":    true,
		"die Lieferung dauert inzwischen neun Wochen": true,
		"Les réunions ont lieu le mardi désormais.":   true,
		"o servidor mudou para a porta 9090":          true,
		"使用するデータベースはPostgresに変わりました":                  true,
		"use a dict instead of that chain of ifs":     false,
		"now change the icon as well, please":         false,
		"and how fast does the bus go now":            false,
		"เปลี่ยนสีพื้นหลังยังไง":                      false,
		"mach jetzt den Knopf rot":                    false,
		"¿cómo cambio ahora el color del fondo?":      false,
	} {
		if got := e.mayState(t.Context(), text); got != want {
			t.Errorf("%q may be a statement: %v, want %v", text, got, want)
		}
	}
}

// TestUnderstand checks that the built-in model finds statements in another language than
// the question, and returns no facts for routine questions and requests.
func TestUnderstand(t *testing.T) {
	e := openEmbedded(t)
	understand(t, e)
	for i, said := range []string{
		"My cat Pixel just jumped on the table.", "The exam is on the 8th of February.", "We deploy on Fridays at noon.",
		"Kunden mit Sitz in der Schweiz bekommen keine Umsatzsteuer.", "The server in the cellar has 64 GB.", "Anna leads the design team.",
		"The printer is in room 12.", "We close at eleven in the evening.", "The header test fails since yesterday.", "Should we rename the tests?",
	} {
		tell(t, e, "g", string(rune('a'+i)), said, "Your cat is called Pixel, I know.")
	}
	stored := func() (vectors, empty int) {
		const query = "SELECT count(*), count(*) FILTER (WHERE length(vec) = 0) FROM vectors"
		must(t, e.db.Each(t.Context(), query, nil, func(scan func(...any) error) error { return scan(&vectors, &empty) }))
		return vectors, empty
	}
	helptest.Until(t, "vectors of all messages", func() bool { n, _ := stored(); return n == 20 })
	if _, empty := stored(); empty != 10 {
		t.Errorf("%d messages have an empty vector, want 10: the model's messages", empty)
	}
	for question, want := range map[string]string{
		"Wie heißt meine Katze?":                "Pixel",
		"Wann ist die Prüfung?":                 "8th of February",
		"What about Swiss clients and the VAT?": "Schweiz",
		"Why is this so slow?":                  "",
		"Rename it, Katze.":                     "",
		"Ποιος μας πάει παγάκια;":               "",
		"What is the capital of Peru?":          "",
	} {
		facts, err := e.Search(t.Context(), []string{"g"}, question, 5)
		must(t, err)
		var got string
		for _, f := range facts {
			if f.Strength >= enough {
				got += f.Text + "\n"
			}
		}
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("Search(%q) = %q, want %q", question, got, want)
		}
	}
}

// TestUnderstand_Facts checks that a question in another language finds a fact by its text
// and keys, and so does a request that needs the fact, and that a forget deletes the
// vectors.
func TestUnderstand_Facts(t *testing.T) {
	e := openDistilled(t)
	understand(t, e)
	say(t, e, "g", "1", "Moved in last week, boxes and all; on the keyboard I use dvorak.", "Welcome home.")
	distil(t, e,
		graphiti.Distilled{Text: "The user lives in Tampere", Kind: "place", About: graphiti.AboutUser, Keys: []string{"ciudad", "home town"}},
		graphiti.Distilled{Text: "Keyboard layout: dvorak", Kind: "preference", About: "keyboard", Keys: []string{"shortcuts", "typing"}},
		graphiti.Distilled{Text: "The staging host is oak.example, port 2207", Kind: "host", About: "staging", Keys: []string{"test server"}})
	helptest.Until(t, "vectors of the facts", func() bool {
		var n int
		err := e.db.QueryRow(t.Context(), "SELECT count(*) FROM vectors v JOIN facts f ON f.id = v.id WHERE length(v.vec) > 0", nil, &n)
		return err == nil && n == 3
	})
	finds := func(question string) string {
		facts, err := e.Search(t.Context(), []string{"g"}, question, 5)
		must(t, err)
		var got []string
		for _, f := range facts {
			if f.Strength >= enough {
				got = append(got, f.Text)
			}
		}
		return strings.Join(got, " | ")
	}
	for _, tc := range []struct{ asked, want string }{
		{"¿en qué ciudad vivo?", "The user lives in Tampere"},
		{"In welcher Stadt wohne ich?", "The user lives in Tampere"},
		{"run the tests", ""},
		{"which host do we try things on", "The staging host is oak.example, port 2207"},
	} {
		if got := finds(tc.asked); got != tc.want {
			t.Errorf("%q finds %q, want %q", tc.asked, got, tc.want)
		}
	}
	for _, tc := range []struct {
		asked, about string
	}{
		{"In welcher Stadt wohne ich?", "The user lives in Tampere"}, // needs a home, in other words
		{"should the live badge pulse?", ""},                         // needs a body
		{"which ciudad has the server?", ""},                         // not about the person
		{"which shortcuts move between the panes?", "Keyboard layout: dvorak"},
	} {
		facts, err := e.Search(t.Context(), []string{"g"}, tc.asked, 5)
		must(t, err)
		facts = slices.DeleteFunc(facts, func(f graphiti.Fact) bool { return f.Meant })
		if len(facts) > 1 || len(facts) == 1 && facts[0].Text != tc.about || len(facts) == 0 && tc.about != "" {
			t.Errorf("%q is about %v, want %q", tc.asked, facts, tc.about)
		}
	}
	must(t, e.Forget(t.Context(), "g"))
	var left int
	if err := e.db.QueryRow(t.Context(), "SELECT count(*) FROM vectors", nil, &left); err != nil || left != 0 {
		t.Errorf("%d vectors are left after the forget (%v), want none", left, err)
	}
}

// TestMeant_EarlierQuestion checks that a message with a word of an earlier question only is not
// found by a word of the question.
func TestMeant_EarlierQuestion(t *testing.T) {
	e := openEmbedded(t)
	understand(t, e)
	const rent = "the van for the move is 89 euros a day"
	tell(t, e, "g", "a", rent, "Noted.")
	helptest.Until(t, "vectors of all messages", func() bool {
		var n int
		return e.db.QueryRow(t.Context(), "SELECT count(*) FROM vectors", nil, &n) == nil && n == 2
	})
	for _, tc := range []struct {
		asked string
		want  bool
	}{
		{"what does the van cost?", false},
		{"how much is it for a day?" + graphiti.Earlier + "i need a van", false},
		{"what did they charge?" + graphiti.Earlier + "i need a van for the move", true},
	} {
		facts, err := e.Search(t.Context(), []string{"g"}, tc.asked, 5)
		must(t, err)
		i := slices.IndexFunc(facts, func(f graphiti.Fact) bool { return strings.Contains(f.Text, rent) })
		if i < 0 || facts[i].Meant != tc.want {
			t.Errorf("%q finds %+v, want the rent with Meant %v", tc.asked, facts, tc.want)
		}
	}
}

// TestUnderstand_Routine checks that an everyday request finds no message that only shares
// words with it, that earlier everyday requests are not shown, and that an answer to a
// question is.
func TestUnderstand_Routine(t *testing.T) {
	e := openEmbedded(t)
	understand(t, e)
	for i, said := range []string{"We write tests as tables, one line for a case.", "commit the parser and push it", "The parser reads at most 4 MB."} {
		tell(t, e, "g", string(rune('a'+i)), said, "Done.")
	}
	helptest.Until(t, "vectors of all messages", func() bool {
		var n int
		return e.db.QueryRow(t.Context(), "SELECT count(*) FROM vectors", nil, &n) == nil && n == 6
	})
	for _, tc := range []struct{ asked, want string }{
		{"run the tests", ""},
		{"führ die Tests aus", ""},
		{"How do we write tests?", "We write tests as tables"},
		{"How many MB does our parser read", "at most 4 MB"},
	} {
		facts, err := e.Search(t.Context(), []string{"g"}, tc.asked, 5)
		must(t, err)
		var got string
		for _, f := range facts {
			if f.Strength >= enough {
				got += f.Text + "\n"
			}
		}
		if tc.want == "" && got != "" || !strings.Contains(got, tc.want) || strings.Contains(got, "push it") {
			t.Errorf("Search(%q) = %q, want %q", tc.asked, got, tc.want)
		}
	}
}

// TestQuestion_OneAtATime checks that a second question waits for the first one until its
// own deadline.
func TestQuestion_OneAtATime(t *testing.T) {
	v := &vectors{asking: make(chan struct{}, 1), recent: newRecentVectors()}
	begun, goOn := make(chan struct{}), make(chan struct{})
	v.embed = func(context.Context, []string) ([][]int8, error) {
		close(begun)
		<-goOn
		return [][]int8{{1}}, nil
	}
	first := make(chan error)
	go func() {
		_, err := v.question(t.Context(), "first")
		first <- err
	}()
	<-begun
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := v.question(ctx, "second"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("second question = %v, want %v", err, context.DeadlineExceeded)
	}
	close(goOn)
	if err := <-first; err != nil {
		t.Errorf("first question = %v, want no error", err)
	}
}

// TestVectors_Oldest checks that messages that are too old to be compared are not embedded.
func TestVectors_Oldest(t *testing.T) {
	e := openEmbedded(t)
	rows := make([]graphiti.Row, 2*maxCompared+2)
	for i := range rows {
		rows[i] = graphiti.Row{Name: fmt.Sprint("m", i), Role: graphiti.RoleUser, Text: "Here.", Said: said, Source: "{}"}
	}
	must(t, e.Write(t.Context(), "g", rows))
	var ids []int64
	err := e.db.Each(t.Context(), "SELECT id FROM messages ORDER BY id", nil, func(scan func(...any) error) error {
		ids = append(ids, 0)
		return scan(&ids[len(ids)-1])
	})
	must(t, err)
	first, second, last := ids[0], ids[1], ids[len(ids)-1]
	v := &vectors{db: e.db}
	batch, err := v.read(t.Context(), []int64{first, second, last})
	must(t, err)
	got := make(map[int64]bool)
	for _, m := range batch {
		got[m.id] = m.states
	}
	if want := map[int64]bool{first: false, second: true, last: true}; !maps.Equal(got, want) {
		t.Errorf("embedded are %v, want %v", got, want)
	}
}

// TestUnderstand_Repeated checks that a request that the person repeats finds neither itself nor a
// statement, even if its gate takes it for a question.
func TestUnderstand_Repeated(t *testing.T) {
	for _, request := range []string{"my branch lags, merge it again", "bei mir kommt im Prüfer null an", "the preview stays empty, look again", "¿lo pruebas otra vez?"} {
		e := openEmbedded(t)
		understand(t, e)
		e.fit.Asks.Bias += 8 // every message asks
		chats(t, e, []string{"The office is in Graz.", "Noted."}, []string{request, "Done.", "thanks", "Sure."})
		helptest.Until(t, "vectors", e.Compares)
		if got := strong(t, e, request); len(got) > 0 {
			t.Errorf("%q: found %q", request, got)
		}
	}
}

// TestUnderstand_Corrected checks that a statement with all words of an older one takes its place,
// and that a longer statement does not.
func TestUnderstand_Corrected(t *testing.T) {
	for _, tc := range []struct {
		name, old, newer, question string
		both                       bool
	}{
		{"German", "Der Parkplatz ist Nummer 14.", "Der Parkplatz ist Nummer 17, nicht 14.", "Welche Nummer hat der Parkplatz?", false},
		{"Ukrainian", "Код від домофона 38К.", "Код від домофона 52К, а не 38К.", "Який код від домофона?", false},
		{"Polish", "Szafka ma numer 12.", "Szafka ma numer 21, a nie 12.", "Jaki numer ma szafka?", false},
		{"other words", "Der Parkplatz ist Nummer 14.", "Der Stellplatz von Lena hat jetzt die Nummer 17 und ist nebenan.", "Welche Nummer hat der Parkplatz?", true},
	} {
		e := openEmbedded(t)
		understand(t, e)
		chats(t, e, []string{tc.old, "Noted."}, []string{tc.newer, "Noted."})
		helptest.Until(t, "vectors", e.Compares)
		got := strong(t, e, tc.question)
		if old := slices.Contains(got, tc.old); old != tc.both || !tc.both && !slices.Contains(got, tc.newer) {
			t.Errorf("%s: found %q, want the older statement: %v", tc.name, got, tc.both)
		}
	}
}

// TestUnderstand_CorrectedInReturn checks that a reply to a question corrects what answered it, in any
// language and without a mark.
func TestUnderstand_CorrectedInReturn(t *testing.T) {
	for _, said := range [][3]string{
		{"we take the 0.7 litre jar", "which jar do we take", "not anymore, 0.5 now"},
		{"банку беремо на 0.7 літра", "яку банку беремо", "вже ні, 0.5"},
		{"παίρνουμε το βάζο των 0.7 λίτρων", "ποιο βάζο παίρνουμε", "όχι πια, 0.5"},
		{"tunachukua chupa ya lita 0.7", "tunachukua chupa gani", "sio tena, 0.5"},
		{"আমরা ০.৭ লিটারের জার নিই", "আমরা কোন জার নিই", "আর না, এখন ০.৫"},
	} {
		e := openEmbedded(t)
		understand(t, e)
		chats(t, e, []string{"The mobile app is called Puffin.", "Noted.", "Logs go to Loki.", "Noted.", said[0], "Noted."}, []string{said[1], "0.7.", said[2], "Noted."})
		helptest.Until(t, "vectors", e.Compares)
		if got := strong(t, e, said[1]); !slices.Contains(got, said[2]) {
			t.Errorf("%q: found %q, want also %q", said[1], got, said[2])
		}
	}
}

// TestRows_Statements checks that vectors tell statements from requests and questions in languages
// that the list of words does not have, and that words decide before there are vectors.
func TestRows_Statements(t *testing.T) {
	e := openEmbedded(t)
	said := []struct {
		text   string
		states bool
	}{
		{"The staging server is staging.shop.example, port 2222.", true},
		{"Kunden mit Sitz in der Schweiz bekommen keine Umsatzsteuer.", true},
		{"De kinderen gaan op woensdag zwemmen.", true},
		{"rename this function", false},
		{"My dog is called Rex.", true},
		{"přejmenuj tu funkci", false},
		{"maak de kop iets kleiner", false},
		{"Which database does this project use?", false},
	}
	for i, m := range said {
		tell(t, e, "g", string(rune('a'+i)), m.text, "Noted.")
	}
	statements := func() (list []string) {
		for r, err := range e.Rows(t.Context(), "g", graphiti.Filter{Roles: []graphiti.RoleType{graphiti.RoleUser}, Statements: true, Text: true}) {
			must(t, err)
			list = append(list, r.Text)
		}
		return list
	}
	if got := statements(); slices.Contains(got, said[7].text) || !slices.Contains(got, said[0].text) {
		t.Errorf("statements without vectors: %q", got)
	}
	understand(t, e)
	var want []string
	for _, m := range said {
		if m.states {
			want = append(want, m.text)
		}
	}
	helptest.Until(t, "vectors of all messages", func() bool {
		var n int
		return e.db.QueryRow(t.Context(), "SELECT count(*) FROM vectors", nil, &n) == nil && n == 2*len(said)
	})
	if got := statements(); !slices.Equal(got, want) {
		t.Errorf("statements by their vectors: %q, want %q", got, want)
	}
}
