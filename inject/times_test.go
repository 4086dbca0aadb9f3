package inject

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
)

// TestRecallThatNeverWaits checks that a recall without waiting returns immediately, and
// that the next turn gets its results.
func TestRecallThatNeverWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := memory(t, func(context.Context, string, string) ([]graphiti.Fact, error) {
			time.Sleep(300 * time.Millisecond)
			return facts("late"), nil
		}, &fakeDecisions{}, &fakeFacts{})
		o := *m.opts()
		o.NoWait = true
		m.Set(o.Groups, o.RecallSettings)
		start := time.Now()
		got, p := ask(t, m, turn1, both)
		if took := time.Since(start); took != 0 || got != turn1 || p.Outcome.Status != StatusTimeout {
			t.Errorf("took %v: %s (%+v)", took, got, p.Outcome)
		}
		time.Sleep(time.Second)
		c, _ := parse(t, turn1)
		p = m.Plan(context.Background(), c, c.Chain(dialect.Root("", "p"), nil), graphiti.Who{User: "user:p", Session: "session:other"}, true, both)
		if p.Outcome.Source != SourceCache || p.Outcome.Facts != 1 {
			t.Errorf("after the search came back: %+v", p.Outcome)
		}
		m.Close()
	})
}
