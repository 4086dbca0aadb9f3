package dialect_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect/chat"
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
