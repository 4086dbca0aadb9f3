package embedded

import (
	"strings"
	"testing"
)

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
