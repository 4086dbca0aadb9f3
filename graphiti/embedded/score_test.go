package embedded

import (
	"testing"

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
