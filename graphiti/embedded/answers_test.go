package embedded

import (
	"slices"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/internal/sentence"
)

// TestAnswers_NotLikeQuestions checks that an answer comes nearer to its question, compared with another
// question of the same form.
func TestAnswers_NotLikeQuestions(t *testing.T) {
	m, err := sentence.Load()
	must(t, err)
	f := FitOf(m.Name())
	vector := func(text string) []int8 {
		vec, err := m.Encode(t.Context(), text)
		must(t, err)
		return scaled(f.centered(vec))
	}
	gain, n := 0.0, 0.0
	for _, tc := range []struct{ asks, told, other string }{
		{"who has to approve what we bill", "Bertil is back from leave, invoices go across his desk again", "who takes the dog while we are away"},
		{"which day do i keep free for the choir", "rehearsals are on tuesdays now", "which day is easter this year"},
		{"wo lege ich die Schlüssel hin", "Schlüssel kommen in die Dose über dem Herd", "wo bekomme ich einen Schlüsseldienst"},
		{"wie heißt unser neuer Vermieter", "das Haus gehört jetzt der Familie Brandl", "wie heißt die Hauptstadt von Peru"},
		{"quién firma las vacaciones", "los permisos ahora los aprueba Marisa", "quién escribió el Quijote"},
		{"чей это теперь проект", "биллинг забрала себе команда Ани", "чья это картина"},
		{"給料日っていつだっけ", "今月から25日に振り込まれる", "父の日っていつだっけ"},
		{"kto ma klucze do piwnicy", "piwnicą zajmuje się teraz pani Halina", "kto ma urodziny w maju"},
		{"a che ora devo essere là", "la visita è alle 8:20", "a che ora inizia la partita"},
		{"combien je dois à Luc", "Luc m'a avancé 60 euros", "combien coûte un vélo"},
	} {
		asks, told, other := vector(tc.asks), vector(tc.told), vector(tc.other)
		answer := f.Answers.Of(asks)
		before, now := likeness(asks, told)-likeness(asks, other), likeness(answer, told)-likeness(answer, other)
		if gain, n = gain+now-before, n+1; now <= before {
			t.Errorf("%q: likeness of %q less that of %q is %.2f, want more than %.2f without the map", tc.asks, tc.told, tc.other, now, before)
		}
	}
	if gain /= n; gain < 0.05 {
		t.Errorf("the map brings answers nearer by %.3f, want at least 0.05", gain)
	}
}

func TestAnswers_Of(t *testing.T) {
	question := make([]int8, sentence.Dimensions)
	question[3] = 127
	a := Answers{Scale: 1. / 127, Weights: make([]int8, sentence.Dimensions*sentence.Dimensions)}
	if got := a.Of(question); !slices.Equal(got, question) {
		t.Errorf("map without weights: got another vector than the question's")
	}
	a.Weights[5*sentence.Dimensions+3] = 127
	if got := a.Of(question); got[3] != 90 || got[5] != 90 {
		t.Errorf("got %d and %d, want the third dimension to give half of its direction to the fifth", got[3], got[5])
	}
	if got := a.Of(question[:512]); !slices.Equal(got, question[:512]) {
		t.Error("vector of another model: got another one than the question's")
	}
}
