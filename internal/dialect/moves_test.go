package dialect_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect/chat"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect/registry"
)

// TestAnswers checks that Answers yields the answers to a person, newest first.
func TestAnswers(t *testing.T) {
	const greeting, hi, yes = `{"role":"assistant","content":"Got it."}`, `{"role":"user","content":"hi"}`, `{"role":"assistant","content":"yes"}`
	const machine = `{"role":"user","content":"<system-reminder>\nx\n</system-reminder>"}`
	for _, tc := range []struct {
		messages []string
		want     []int
	}{
		{[]string{greeting}, nil},
		{[]string{greeting, hi}, nil},
		{[]string{machine, greeting, hi}, nil},
		{[]string{greeting, hi, yes, hi}, []int{2}},
		{[]string{hi, yes, hi, yes, hi}, []int{3, 1}},
	} {
		var c dialect.Conversation
		if !(chat.Dialect{}).Parse([]byte(`{"messages":[`+strings.Join(tc.messages, ",")+`]}`), &c) {
			t.Fatalf("not understood: %s", tc.messages)
		}
		if got := slices.Collect(c.Answers); !slices.Equal(got, tc.want) {
			t.Errorf("%v: %v, want %v", tc.messages, got, tc.want)
		}
	}
}

// TestFingerprintOfOtherForms checks that a text has the same fingerprint with other line ends
// and with composed letters.
func TestFingerprintOfOtherForms(t *testing.T) {
	for _, body := range []string{
		`{"messages":[{"role":"user","content":"My cafe\u0301 is\r\nthe Heron."},{"role":"assistant","content":"Caf\u00e9?\r\nYes."}]}`,
		"{\"messages\":[{\"role\":\"user\",\"content\":\"My cafe\u0301 is\\nthe Heron.\"},{\"role\":\"assistant\",\"content\":\"Cafe\u0301?\\nYes.\"}]}",
		`{"messages":[{"role":"user","content":[{"type":"text","text":"My caf\u00e9 is\nthe Heron."}]},{"role":"assistant","content":"Caf\u00e9?\nYes."}]}`,
	} {
		var c dialect.Conversation
		if !(chat.Dialect{}).Parse([]byte(body), &c) {
			t.Fatalf("not understood: %s", body)
		}
		chain := c.Chain(dialect.Root("", "p"), nil)
		if want := dialect.Root("", "p").Link(dialect.RoleUser, []byte("My café is\nthe Heron.")).Link(dialect.RoleAssistant, []byte("Café?\nYes.")); chain[1] != want {
			t.Errorf("%s: another fingerprint", body)
		}
	}
}

// oneHeader is a Header with one field.
type oneHeader struct{ name, value string }

func (h oneHeader) Peek(name string) []byte {
	if name == h.name {
		return []byte(h.value)
	}
	return nil
}

// TestCodexSubagentsThread checks that a turn which a subagent runs for another turn counts
// as a subagent's. A turn that a person adds to the subagent's thread counts as the
// person's, but the earlier messages of the thread do not.
func TestCodexSubagentsThread(t *testing.T) {
	body := []byte(`{"model":"m","messages":[{"role":"user","content":"Count the sheep."},{"role":"assistant","content":"Seven."},{"role":"user","content":"The river is called Isar."}]}`)
	for _, tc := range []struct {
		source, turn, root string
		subagent, history  bool
	}{
		{"user", "t1", "t1", false, true},
		{"subagent", "t1", "t0", true, false},
		{"subagent", "t1", "", true, false}, // older versions send no root
		{"subagent", "", "", true, false},
		{"subagent", "t1", "t1", false, false},
	} {
		var c dialect.Conversation
		if !registry.All[0].Parse(body, &c) {
			t.Fatal("not understood")
		}
		told := fmt.Sprintf(`{"request_kind":"turn","thread_source":%q,"turn_id":%q,"root_turn_id":%q}`, tc.source, tc.turn, tc.root)
		if got := c.Signals(oneHeader{"X-Codex-Turn-Metadata", told}); got != tc.subagent {
			t.Errorf("%s: subagent %v", told, got)
		}
		if text, _ := c.AnswerTo(0); (text != nil) != tc.history {
			t.Errorf("%s: its history is a person's: %v", told, !tc.history)
		}
	}
}
