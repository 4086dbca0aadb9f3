package dialect_test

import (
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect/chat"
)

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
