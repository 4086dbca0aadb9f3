package embedded

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/internal/sentence"
)

// TestFitOf checks that the numbers have a weight for each feature, in their order.
func TestFitOf(t *testing.T) {
	for k, name := range FeatureNames {
		if got := FitOf(sentence.Name).Score.Features[k]; got.Name != name || got.Deviation == 0 {
			t.Errorf("feature %d is %+v, want %s with a deviation", k, got, name)
		}
	}
}

// TestStrength checks which strengths by words and likenesses suffice for a message, by its gate.
func TestStrength(t *testing.T) {
	for _, tc := range []struct {
		name                    string
		asks, words, like, sure float64
		want                    bool
	}{
		{"a question, found by its words", 0.5, enough, 0, 0.5, true},
		{"a question, found by its meaning", surelyAsks, 0, 0.35, 0.9, true},
		{"a question that is like another question", surelyAsks, 0, 0.35, 0.1, false},
		{"a request with shared words", asksNothing - 0.1, certain - 0.01, 0.9, 0.9, false},
		{"a request with all words of a statement", asksNothing - 0.1, certain, 0, 0.5, true},
	} {
		f := Features{fAsks: tc.asks, fBefore: tc.words, fLike: tc.like, fSure: tc.sure}
		if got := FitOf(sentence.Name).Score.Strength(&f); got >= enough != tc.want {
			t.Errorf("%s: strength %.2f, want at least %.2f: %v", tc.name, got, enough, tc.want)
		}
	}
}

func TestPartsOfAQuestion(t *testing.T) {
	for text, want := range map[string][]string{
		"What is my cat called?":                         nil,
		"What is my cat called? Then run the tests.":     {"What is my cat called?", "Then run the tests."},
		"Is it v1.2.3 at example.com or main.go?":        nil,
		"And the port?!\nWhat is my cat called?":         {"And the port?!", "What is my cat called?"},
		"So. And the port\nWhat was before. And before.": {"So.", "And the port", "What was before.", "And before."},
		"Is my locker no. 5 or no. 7?":                   nil,
		"猫の名前は？犬は？":                                      {"猫の名前は？", "犬は？"},
		"":                                               nil,
	} {
		if diff := cmp.Diff(want, partsOf(text)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}

// TestQuestionWithInstruction checks that an instruction after a question does not weaken the
// answer, and finds no facts of its own.
func TestQuestionWithInstruction(t *testing.T) {
	s := openEmbedded(t)
	var said []graphiti.Row
	for i, text := range []string{"My cat is called Miso.", "The port is 5433.", "Lunch is at noon."} {
		said = append(said, graphiti.Row{Name: fmt.Sprint(i), Role: graphiti.RoleUser, Text: text, Said: time.Now()})
	}
	must(t, s.Write(t.Context(), "g", said))
	strongest := func(question string) (best float64) {
		facts, err := s.Search(context.Background(), []string{"g"}, question, 5)
		must(t, err)
		for _, f := range facts {
			best = max(best, f.Strength)
		}
		return best
	}
	alone := strongest("What is my cat called?")
	if with := strongest(`What is my cat called? Count first with exec_command, cmd, echo "forty-two", and write a summary of src/router.`); with < alone {
		t.Errorf("%.2f with an order, %.2f alone", with, alone)
	}
	if other := strongest(`Count first with exec_command, cmd, echo "forty-two". Write a summary of src/router.`); other > 0 {
		t.Errorf("%.2f of an order alone", other)
	}
}
