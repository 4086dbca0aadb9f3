package embedded

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/internal/helptest"
	"github.com/graphiti-proxy/graphiti-proxy/internal/sentence"
)

var said = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

// tell stores one turn.
func tell(t testing.TB, e *Store, group, turn, user, assistant string) {
	t.Helper()
	if err := e.Write(context.Background(), group, []graphiti.Row{
		{Name: graphiti.EpisodeName(turn, graphiti.RoleUser), Role: graphiti.RoleUser, Text: user, Said: said, Source: `{"session":"` + turn + `"}`},
		{Name: graphiti.EpisodeName(turn, graphiti.RoleAssistant), Role: graphiti.RoleAssistant, Text: assistant, Said: said, Source: `{"session":"` + turn + `"}`},
	}); err != nil {
		t.Fatal(err)
	}
}

func search(t testing.TB, e *Store, group, query string) []string {
	t.Helper()
	facts, err := e.Search(context.Background(), []string{group}, query, 5)
	must(t, err)
	var out []string
	for _, f := range facts {
		out = append(out, f.Text)
	}
	return out
}

func TestEmbeddedFindsMessages(t *testing.T) {
	e := openEmbedded(t)
	tell(t, e, "g", "1", "My cat is called Miso.", "A lovely name!")
	tell(t, e, "g", "2", "What is my cat called?", "Your cat is called Miso.")
	tell(t, e, "g", "3", "We deploy on Fridays with\n\n  Terraform.", "Noted.")
	tell(t, e, "g", "4", "Ich wohne in Köln.", "Schön.")
	tell(t, e, "other", "5", "My cat is called Garfield.", "Ha.")
	for _, tc := range []struct {
		name, query string
		want        []string
	}{
		{"what a person said, and neither the question nor its answer", "What is my cat called?", []string{
			"user, 2026-03-02: My cat is called Miso."}},
		{"other forms of a word", "when was the deployment, on a friday?", []string{"user, 2026-03-02: We deploy on Fridays with Terraform."}},
		{"without its accent", "Wo liegt koln?", []string{"user, 2026-03-02: Ich wohne in Köln."}},
		{"only words that say nothing", "what is the and of it", nil},
		{"nothing known", "zebra", nil},
		{"query language is text", `"cat" OR NOT * ( : ^ NEAR(`, []string{
			"user, 2026-03-02: My cat is called Miso."}},
		{"empty", "", nil},
	} {
		if diff := cmp.Diff(tc.want, search(t, e, "g", tc.query)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
	}
}

func TestEmbeddedShowsThePartThatMatches(t *testing.T) {
	e := openEmbedded(t)
	long := strings.Repeat("é lorem ipsum ", 100) + "the password manager is Vaultwarden " + strings.Repeat("dolor ü ", 100)
	tell(t, e, "g", "1", long, "")
	got := search(t, e, "g", "which vaultwarden?")
	if len(got) != 1 || !strings.Contains(got[0], "Vaultwarden") || len([]rune(got[0])) > shownMax+40 {
		t.Errorf("got facts %q, want one, cut around Vaultwarden", got)
	}
}

func TestEmbeddedKeepsAMessageOnce(t *testing.T) {
	e := openEmbedded(t)
	for range 3 {
		tell(t, e, "g", "1", "hello", "yes")
	}
	rows := rowsOf(t, e, "g", graphiti.Filter{Text: true})
	if len(rows) != 2 || rows[0].Text != "hello" || rows[0].Role != graphiti.RoleUser || rows[1].Name != graphiti.EpisodeName("1", graphiti.RoleAssistant) {
		t.Errorf("got %+v, want the question and the answer", rows)
	}
}

func TestEmbeddedForgets(t *testing.T) {
	e := openEmbedded(t)
	tell(t, e, "g", "1", "secret cat", "yes")
	tell(t, e, "h", "1", "the other cat sleeps in the attic", "yes")
	for range 2 {
		must(t, e.Forget(context.Background(), "g"))
	}
	if got := search(t, e, "g", "secret cat"); got != nil {
		t.Errorf("still there: %q", got)
	}
	if got := search(t, e, "h", "cat"); len(got) != 1 {
		t.Errorf("another group lost its memory: %q", got)
	}
}

// wordVectors is an encoder in place of the models, which takes no time: texts with the same words
// have similar vectors, and all of them ask.
type wordVectors struct{ fit *Fit }

func (wordVectors) Name() string { return sentence.Name }

func (m wordVectors) Encode(_ context.Context, text string) ([]float32, error) {
	const asking = 0.005 // share of the weights of the gate with which a text passes it
	vec, length := make([]float32, sentence.Dimensions), float32(0)
	for w := range strings.FieldsSeq(text) {
		n, err := strconv.Atoi(w[1:])
		if err != nil {
			return nil, err
		}
		r := rand.New(rand.NewPCG(uint64(n), 0))
		for i := range vec {
			vec[i] += 2*r.Float32() - 1
		}
	}
	for _, x := range vec {
		length += x * x
	}
	for i := range vec {
		vec[i] = vec[i]/float32(math.Sqrt(float64(length))) + m.fit.Center[i] + asking*m.fit.Asks.Weights[i]
	}
	return vec, nil
}

// BenchmarkEmbeddedSearch measures a search of a group of 100,000 turns with word
// frequencies like those of a language, then by meaning, too, without the time that the models take
// for a vector, and then with 10,000 distilled facts.
func BenchmarkEmbeddedSearch(b *testing.B) {
	e := openEmbedded(b)
	r := rand.New(rand.NewPCG(1, 2))
	zipf := rand.NewZipf(r, 1.1, 4, 30000)
	text := func(n int) string {
		var s strings.Builder
		for range n {
			fmt.Fprintf(&s, "w%d ", zipf.Uint64())
		}
		return s.String()
	}
	for turn := 0; turn < 100000; {
		var m []graphiti.Row
		for range 1000 {
			turn++
			m = append(m, graphiti.Row{Name: graphiti.EpisodeName(fmt.Sprint(turn), graphiti.RoleUser), Role: graphiti.RoleUser, Text: text(15), Said: said})
		}
		must(b, e.Write(context.Background(), "g", m))
	}
	queries := map[string]func() string{
		"natural": func() string { return text(10) },
		"common":  func() string { return "w0 w1 w2 w3 w4" },
		"rare":    func() string { return fmt.Sprintf("w%d w%d", 2000+r.IntN(20000), 2000+r.IntN(20000)) },
	}
	run := func(name string) {
		search(b, e, "g", "w0") // builds the index
		for of, query := range queries {
			b.Run(name+"/"+of, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					must(b, helptest.ErrorOf(e.Search(context.Background(), []string{"g"}, query(), 24)))
				}
			})
		}
	}
	run("messages")
	fit := FitOf(sentence.Name)
	e.Understand(wordVectors{fit}, fit, slog.New(slog.DiscardHandler))
	e.mean.end() // the vectors are not computed in the background, but here
	v, texts := &groupVectors{}, make([]string, maxCompared)
	for i := range texts {
		texts[i] = text(15)
		v.places = append(v.places, int64(100000-i))
	}
	var err error
	v.vecs, err = e.mean.embed(context.Background(), texts)
	must(b, err)
	number, _, err := e.group(context.Background(), "g")
	must(b, err)
	e.mean.groups.Add(number, v, maxHeld/2)
	run("meaning")
	e.mean = nil
	facts := make([]graphiti.Distilled, 10000)
	for i := range facts {
		facts[i] = graphiti.Distilled{
			Name: fmt.Sprint("fact", i), Text: text(10), Kind: "other", Keys: strings.Fields(text(4)), Role: graphiti.RoleUser, Since: said, Made: said,
			Sources: []string{graphiti.EpisodeName(fmt.Sprint(10*i+1), graphiti.RoleUser)},
		}
	}
	if n, err := e.RestoreDistilled(context.Background(), "g", facts); n != len(facts) || err != nil {
		b.Fatalf("stored %d facts, %v; want %d", n, err, len(facts))
	}
	run("facts")
}
