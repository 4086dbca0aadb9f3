package embedded

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/internal/helptest"
	"github.com/graphiti-proxy/graphiti-proxy/internal/sentence"
)

// TestUnmarkedQuestions_Unknown checks that a statement with most words of a question in a language
// that the model does not know is an answer, not the same question from before.
func TestUnmarkedQuestions_Unknown(t *testing.T) {
	m, err := sentence.Load()
	must(t, err)
	for _, tc := range []struct{ told, asks string }{
		{"Cățelul meu se numește Biscuit.", "Cum se numește cățelul meu"},
		{"Ο σκύλος μου λέγεται Κανέλα.", "Πώς λέγεται ο σκύλος μου"},
	} {
		e := openEmbedded(t)
		e.Understand(m, FitOf(m.Name()), slog.New(slog.DiscardHandler))
		chats(t, e, []string{tc.told, "Noted."})
		helptest.Until(t, "vectors", e.Compares)
		if got := strong(t, e, tc.asks); len(got) != 1 || got[0] != tc.told {
			t.Errorf("%q after %q: got %q, want only that", tc.asks, tc.told, got)
		}
	}
}

// TestUnmarkedQuestionsFindStatements: a message that may ask, in a language that the words
// do not know, is answered by a statement, and not by a request of nearly the same words.
func TestUnmarkedQuestionsFindStatements(t *testing.T) {
	for _, tc := range []struct {
		said       [][]string
		asks, want string
	}{
		{[][]string{{"cart stürzt ab", "Noted."}, {"login form stürzt ab", "Noted."}, {"session store stürzt ab", "Noted."}, {"The port of the database is 6543.", "Noted."}}, "CLI flags stürzt ab", ""},
	} {
		e := openEmbedded(t)
		chats(t, e, tc.said...)
		if got := strings.Join(strong(t, e, tc.asks), " | "); got != tc.want {
			t.Errorf("%q after %q: got %q, want %q", tc.asks, tc.said, got, tc.want)
		}
	}
}
