package embedded

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// TestNotes checks the flags in the note of a message, each with a counterexample.
func TestNotes(t *testing.T) {
	for _, tc := range []struct {
		role          graphiti.RoleType
		speaker, text string
		flags         uint16
	}{
		{graphiti.RoleUser, "Ann", "The port is 6543.", isOfTime | isStopped},
		{graphiti.RoleUser, "Ann", "The port is closed.", isStopped},
		{graphiti.RoleUser, "Ann", "Which port is it?", isAsking | isOnlyAsked},
		{graphiti.RoleUser, "Ann", "Staging is slow. Which port is it?", isAsking},
		{graphiti.RoleAssistant, "", "Noted.", isModels | isOnlyAsked | isStopped},
		{graphiti.RoleAssistant, "Bob", "Noted: 6543.", isOfTime | isStopped},
		{graphiti.RoleAssistant, "", "It is closed.", isModels | isStopped},
		{graphiti.RoleSystem, "", "Tabs, not spaces.", isCurated | isStopped},
		{graphiti.RoleUser, "", "", 0},
	} {
		n := noteOf(tc.role, tc.speaker, tc.text, time.Date(1969, 12, 31, 23, 0, 0, 0, time.UTC))
		if n.Flags != tc.flags || int(n.Length) != len(tc.text) || n.Day != -1 {
			t.Errorf("%s %q %q: got note %+v, want flags %v and no day", tc.role, tc.speaker, tc.text, n, tc.flags)
		}
	}
}

// TestWordsOfTimeAreFound checks that tellsTime and a plain scan agree on whether a text
// names a time.
func TestWordsOfTimeAreFound(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	parts := []string{"cat", "Friday", "FRIDAY", "fridays", "März", "ago", "x2", "2x", "_", "año", "-", " ", " ", " ", "\n", "?", "ſunday", "K", "September", strings.Repeat("long", 9)}
	for w := range timeWords {
		if len(w) > maxTimeWord {
			t.Errorf("%s is longer than any word of time", w)
		}
	}
	found := 0
	for range 20_000 {
		var b strings.Builder
		for range r.IntN(8) {
			b.WriteString(parts[r.IntN(len(parts))])
		}
		want := tellsTimeIn(b.String())
		if got := tellsTime(b.String()); got != want {
			t.Fatalf("%q names a time: %v, want %v", b.String(), got, want)
		}
		if want {
			found++
		}
	}
	if found < 1000 {
		t.Errorf("%d of them spoke of a time", found)
	}
}
