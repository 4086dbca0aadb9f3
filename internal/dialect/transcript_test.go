package dialect_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
)

func TestTranscripts(t *testing.T) {
	for _, tc := range []struct {
		name, system, text string
		said, answer       string // with | between them
		kind               dialect.Kind
	}{
		{"in brackets, in an element", "", "<conversation>\n[User]: one\ntwo\n\n[Assistant]: three\n\n[Assistant tool calls]: bash(x)\n\n[Tool result]: y\n</conversation>\n\nSummarize it.", "one\ntwo", "three|bash(x)", dialect.KindSummary},
		{"in capitals", "", "Give it a title.\n<chat_history>\nUSER: one\nASSISTANT: two\n</chat_history>", "one", "two", dialect.KindTitle},
		{"headings", "You compact histories.", "### User\none\n### User: one\n### Assistant: two", "one", "two", dialect.KindSummary},
		{"bold", "", "**User:** one\n**Assistant:** two", "one", "two", dialect.KindTurn},
		{"elements", "", "<user>one</user>\n<assistant>two\n</assistant>\nWhat does she mean?", "one</user>", "two", dialect.KindTurn},
		{"one side", "", "User: one\nUser: two\nsummarize", "", "", dialect.KindTurn},
		{"prose", "", "The user: she said no. The assistant: he said yes. Summarize.", "", "", dialect.KindTurn},
	} {
		got := dialect.TranscriptIn([][]byte{[]byte(tc.system)}, []byte(tc.text))
		texts := func(list [][]byte) string {
			var all []string
			for _, b := range list {
				all = append(all, string(b))
			}
			return strings.Join(all, "|")
		}
		if diff := cmp.Diff([]any{tc.said, tc.answer, tc.kind}, []any{texts(got.Said), texts(got.Answer), got.Kind}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
		if tc.answer != "" && !dialect.MayBeTranscript([]byte(tc.text)) {
			t.Errorf("%s: it is not looked at", tc.name)
		}
	}
}

func TestIDs(t *testing.T) {
	for text, want := range map[string]string{
		"keep /home/x/.copilot/session-state/1f0e-9/plan.md":               "1f0e-9",
		"a/.copilot/session-state/1f0e and b/.copilot/session-state/1f0e/": "1f0e",
		"a/.copilot/session-state/1f0e and b/.copilot/session-state/2f0e/": "",
		"a/.copilot/session-state/":                                        "",
		"a/.copilot/session-state/" + strings.Repeat("a", 65):              "",
	} {
		if got := dialect.IDBehind([]byte(text), ".copilot/session-state/"); got != want {
			t.Errorf("%q: got id %q, want %q", text, got, want)
		}
	}
}
