package inject

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/inject/proof"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
)

// fakeTrials is a store of trials in RAM.
type fakeTrials struct{ sync.Map }

func (f *fakeTrials) Load(_ context.Context, key string) ([]byte, error) {
	v, _ := f.Map.Load(key)
	b, _ := v.([]byte)
	return b, nil
}

func (f *fakeTrials) Save(_ context.Context, key string, body []byte, _ int64, _ ...string) error {
	f.Store(key, body)
	return nil
}

func (*fakeTrials) Each(context.Context, func(string, []byte) error, ...string) error { return nil }

// TestWithheld checks that proof mode withholds search results from a share of conversations, in all
// of their turns, with the same search and decision; and that rules, and the header that asks for
// memory, are never withheld.
func TestWithheld(t *testing.T) {
	p := proof.Open(&fakeTrials{}, proof.Terms{Share: 0.5, Number: 1000}, slog.New(slog.DiscardHandler))
	t.Cleanup(p.Close)
	m := opened(t, always("the port is 9090"), &fakeOpening{facts: []graphiti.Fact{laid("Never push to main.")}}, func(o *options) {
		o.MinScore, o.Proof = 0, p
	})
	plan := func(n int, body string, mode Mode) (string, Plan) {
		c, _ := parse(t, body)
		who := graphiti.Who{User: "user:p", Session: fmt.Sprint("session:", n)}
		of := m.Plan(context.Background(), c, c.Chain(dialect.Root("", "p"), nil), who, false, mode)
		return plain(string(bytes.Join(dialect.Splice(nil, []byte(body), of.Inserts), nil))), of
	}
	asked := both
	asked.Asked = true
	withheld := 0
	for n := range 40 {
		body, of := plan(n, turn1, both)
		if !strings.Contains(body, "Never push to main.") {
			t.Fatalf("conversation %d has no rule: %s", n, body)
		}
		shows := strings.Contains(body, "the port is 9090")
		later, next := plan(n, turn2, both)
		if !shows {
			withheld++
			if of.Outcome.Reason != ReasonWithheld || next.Outcome.Reason != ReasonWithheld || strings.Contains(later, "9090") {
				t.Errorf("conversation %d: outcomes %+v, %+v of a withheld block, and the body %s", n, of.Outcome, next.Outcome, later)
			}
			if len(of.Searched) == 0 {
				t.Errorf("conversation %d was not searched for", n)
			}
		}
		if body, of := plan(1000+n, turn1, asked); !strings.Contains(body, "9090") || of.Outcome.Reason != "" {
			t.Errorf("withheld despite the header: %+v", of.Outcome)
		}
	}
	if withheld < 8 || withheld > 32 {
		t.Errorf("withheld from %d of 40 conversations", withheld)
	}
}
