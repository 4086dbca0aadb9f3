package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
)

// TestPrinted checks that turns, messages and groups are printed as tables without control
// characters.
func TestPrinted(t *testing.T) {
	var b strings.Builder
	PrintTurns(&b, service.Listed{})
	PrintTurns(&b, service.Listed{All: 3, Turns: []ledger.Item{{
		Number: 7, Condition: ledger.Dead, Since: time.Now().Add(-90 * time.Second), Attempts: 3, Group: "user_josh", Reason: "400\x1b[2J", User: "Hello,\nyou.", Assistant: "Hello.",
	}}})
	PrintGroups(&b, []ledger.Owned{
		{Group: "user_josh", Scope: "user"}, {Group: "workspace_w", Scope: "workspace", Key: "path:/w", Shared: true}, {Group: "user_ann", Scope: "user", Session: "session:s"},
	})
	got := strings.Join(strings.Fields(b.String()), " ")
	for _, want := range []string{
		"no undelivered turns NUMBER STATE AGE ATTEMPTS GROUP REASON 7 dead 1m30s 3 user_josh 400",
		`user: "Hello,\nyou." assistant: "Hello." … and 2 more; list them with --limit`,
		"user_josh user workspace_w workspace path:/w not deleted: other people wrote to it too user_ann user only that conversation's messages",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
	if strings.Contains(got, "\x1b") {
		t.Errorf("got %q, want no \"\\x1b\" in it", got)
	}
}
