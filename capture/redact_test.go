package capture

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/internal/helptest"
)

// TestNothingKeptHoldsASecret checks that no stored part of a turn contains a credential,
// nor does the stored reason if the memory refuses the turn.
func TestNothingKeptHoldsASecret(t *testing.T) {
	const secret = "hunter22xyz"
	const line = "DB_PASSWORD=" + secret
	m := &fakeMemory{fail: func(group string, _ []graphiti.Row) error {
		if group == "refused" {
			return &graphiti.StatusError{Code: 422, Detail: `{"detail":"what was said before it, ` + line + `, is too long"}`}
		}
		return nil
	}}
	p := pipeline(t, filepath.Join(t.TempDir(), "spool.db"), m)
	for name, tc := range map[string]struct {
		change func(*ledger.Turn)
		want   string // part of the group's texts and sources
	}{
		"what a person says": {func(tn *ledger.Turn) { tn.User = "it is\n" + line + "\nthere" }, "DB_PASSWORD=[redacted:password]"},
		"an answer":          {func(tn *ledger.Turn) { tn.Assistant = "set " + line + " then" }, "DB_PASSWORD=[redacted:password]"},
		"a speaker":          {func(tn *ledger.Turn) { tn.Speaker = "Ann, password: " + secret }, ""},
		"a branch":           {func(tn *ledger.Turn) { tn.Git.Branch = "fix/ghp_" + strings.Repeat("a1B2c3D4e", 4) }, "[redacted:api-key]"},
		"a promoted text":    {func(tn *ledger.Turn) { tn.Kind, tn.User = "decision", "We set "+line }, "We set DB_PASSWORD=[redacted:password]"},
		"whose a group is":   {func(tn *ledger.Turn) { tn.Kind, tn.User = graphiti.KindOwnershipContext, "It belongs to "+line }, "It belongs to DB_PASSWORD=[redacted:password]"},
		"an earlier turn":    {func(tn *ledger.Turn) { tn.Backfill, tn.Assistant = true, line }, "DB_PASSWORD=[redacted:password]"},
		"an open one":        {func(tn *ledger.Turn) { tn.Open, tn.Assistant = true, line }, "DB_PASSWORD=[redacted:password]"},
	} {
		tn := turn(name, name)
		tc.change(&tn)
		must(t, helptest.ErrorOf(p.AddAll(context.Background(), []ledger.Turn{tn})))
		waitFor(t, name, func() bool { return len(m.contents(name)) > 0 })
		all := strings.Join(m.contents(name), "\n") + m.sources(name)
		if strings.Contains(all, secret) || strings.Contains(all, "a1B2c3D4e") || !strings.Contains(all, tc.want) {
			t.Errorf("%s: got %q, want %q in it, and nothing of the secret", name, all, tc.want)
		}
	}
	add(t, p, turn("r", "refused"))
	add(t, p, turn("after it", "other")) // else the memory refuses all
	waitFor(t, "the refusal", func() bool { return p.Status().Dead == 1 })
	dead, _, err := p.Turns(context.Background(), ledger.ListOptions{Condition: ledger.Dead, Limit: 1})
	if err != nil || len(dead) != 1 || strings.Contains(dead[0].Reason, "PASSWORD") {
		t.Errorf("got %+v, %v, want no error, 1 of them, no \"PASSWORD\" in it", dead, err)
	}
	if n := p.Status().Redacted; n != 8 {
		t.Errorf("%d counted", n)
	}
}
