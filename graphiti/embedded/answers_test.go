package embedded

import (
	"log/slog"
	"slices"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/internal/polltest"
	"github.com/graphiti-proxy/graphiti-proxy/internal/sentence"
)

// TestAnswers_NotLikeQuestions checks that a statement without a word of the question ranks before an
// earlier question about something else, which is more like the question.
func TestAnswers_NotLikeQuestions(t *testing.T) {
	m, err := sentence.Load()
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		told, other, asks string
	}{
		{"Bertil is back from leave, invoices go across his desk again", "who takes the dog while we are away", "who has to approve what we bill"},
		{"wir sind jetzt bei Stadtwerke Nord, 31 cent", "was kostet eine neue Heizung", "was zahlen wir fürs kilowatt"},
		{"le portail ferme à 21h30 depuis lundi", "à quelle heure part le train", "jusqu'à quand on peut rentrer le camion"},
		{"la chaudière est repassée à 58 degrés", "à combien tu mets le four pour une pizza", "on l'a réglée sur combien, l'eau chaude"},
	} {
		e := openEmbedded(t)
		e.Understand(m, FitOf(m.Name()), slog.New(slog.DiscardHandler))
		chats(t, e, []string{tc.told, "Noted."}, []string{tc.other, "It depends."})
		polltest.Until(t, "vectors", e.Compares)
		all, _, err := e.Candidates(t.Context(), "g", tc.asks)
		if err != nil {
			t.Fatal(err)
		}
		slices.SortFunc(all, func(a, b Candidate) int { return int(1e6 * (b.Features[fLike] - a.Features[fLike])) })
		for _, c := range all {
			t.Logf("%.2f %s", c.Features[fLike], c.Text)
		}
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
