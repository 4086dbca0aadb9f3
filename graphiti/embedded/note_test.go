package embedded

import (
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
		{graphiti.RoleUser, "Ann", "The port is 6543.", 0},
		{graphiti.RoleUser, "Ann", "The port is closed.", 0},
		{graphiti.RoleUser, "Ann", "Which port is it?", isAsking | isOnlyAsked},
		{graphiti.RoleUser, "Ann", "Staging is slow. Which port is it?", isAsking},
		{graphiti.RoleAssistant, "", "Noted.", isModels | isOnlyAsked},
		{graphiti.RoleAssistant, "Bob", "Noted: 6543.", 0},
		{graphiti.RoleAssistant, "", "It is closed.", isModels},
		{graphiti.RoleSystem, "", "Tabs, not spaces.", isCurated},
		{graphiti.RoleUser, "", "", 0},
	} {
		n := noteOf(tc.role, tc.speaker, tc.text, time.Date(1969, 12, 31, 23, 0, 0, 0, time.UTC))
		if n.Flags != tc.flags || int(n.Length) != len(tc.text) || n.Day != -1 {
			t.Errorf("%s %q %q: got note %+v, want flags %v and no day", tc.role, tc.speaker, tc.text, n, tc.flags)
		}
	}
}
