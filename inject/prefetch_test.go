package inject

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect/chat"
)

// TestPrefetch checks that a question about the topic of the last turn does not wait for a
// slow memory, that another question does, that a question without an answer in time gets
// the prefetched facts, and that forgotten facts are not among them.
func TestPrefetch(t *testing.T) {
	var slow atomic.Int64
	m := memory(t, func(ctx context.Context, _, query string) ([]graphiti.Fact, error) {
		select {
		case <-time.After(time.Duration(slow.Load())):
		case <-ctx.Done():
		}
		if strings.Contains(query, "boat") {
			return facts("The boat is red"), nil
		}
		return facts("Miso is afraid of thunder"), nil
	}, &fakeDecisions{}, &fakeFacts{})
	m.opts().Prefetch, m.opts().Similar = true, 0.25
	who := graphiti.Who{User: "user:p", Session: "session:1"}
	m.Prefetch(who, 0, "My cat Miso hides when it rains.", "Cats often fear loud thunder.")
	m.running.Wait()
	mode := both
	plan := func(question string) Plan {
		var c dialect.Conversation
		chat.Dialect{}.Parse([]byte(`{"messages":[{"role":"user","content":"`+question+`"}]}`), &c)
		return m.Plan(context.Background(), &c, c.Chain(dialect.Root("", "user:p"), nil), who, true, mode)
	}
	slow.Store(int64(200 * time.Millisecond))
	if p := plan("does miso fear thunder when it rains"); p.Outcome.Source != SourceCache || p.Outcome.Facts != 1 {
		t.Errorf("the same: %+v", p.Outcome)
	}
	if p := plan("Which colour has the boat?"); p.Outcome.Source != SourceLive || !strings.Contains(string(p.Inserts[0].Text), "red") {
		t.Errorf("something else: %+v", p.Outcome)
	}
	slow.Store(int64(time.Minute))
	if p := plan("Which colour has the house?"); p.Outcome.Source != SourceStale || !strings.Contains(string(p.Inserts[0].Text), "thunder") {
		t.Errorf("no answer in time: %+v", p.Outcome)
	}
	mode.Generation = 1
	if p := plan("does miso fear thunder or rain"); p.Outcome.Status != StatusTimeout {
		t.Errorf("after forgetting: %+v", p.Outcome)
	}
}

// TestWhatIsLikeTheTurnBefore checks that a question resembles the last turn if they share
// the words of its topic, regardless of the length of the answer, but not if they share
// only common words.
func TestWhatIsLikeTheTurnBefore(t *testing.T) {
	turn := "Which port does the staging database use?\nThe staging database listens on port 6543. " + strings.Repeat("As noted in the runbook, changes need a review by Farid. ", 3)
	for question, like := range map[string]bool{
		"Is that port of the staging database open?": true,
		"Why does the staging database use it?":      true,
		"Who is on call tomorrow?":                   false,
		"What do you think about that?":              false,
		"Which colour does the garden shed have?":    false,
		"": false,
	} {
		if got := likeness(terms(question, maxQuery), terms(turn, firsts)); got >= 0.25 != like {
			t.Errorf("%q: got %.2f, want at least 0.25: %v", question, got, like)
		}
	}
}

// TestNothingNewWhereTheMemoryIsLate checks that a late search counts as a timeout, even if
// the conversation has the prefetched facts already.
func TestNothingNewWhereTheMemoryIsLate(t *testing.T) {
	var failing atomic.Bool
	m := memory(t, func(ctx context.Context, _, query string) ([]graphiti.Fact, error) {
		if strings.Contains(query, "boat") {
			if failing.Load() {
				return nil, errors.New("refused")
			}
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return facts("Miso is afraid of thunder"), nil
	}, &fakeDecisions{}, &fakeFacts{})
	m.opts().Prefetch, m.opts().Similar = true, 0.25
	who := graphiti.Who{User: "user:p", Session: "session:1"}
	said := `{"messages":[{"role":"user","content":"My cat Miso hides when it rains."}`
	if _, p := ask(t, m, said+`]}`, both); p.Outcome.Facts != 1 {
		t.Fatalf("got %+v, want Facts 1", p.Outcome)
	}
	m.Prefetch(who, 0, "My cat Miso hides when it rains.", "Cats fear thunder.")
	m.running.Wait()
	said += `,{"role":"assistant","content":"Cats fear thunder."},{"role":"user","content":"Which colour has the boat`
	if _, p := ask(t, m, said+`?"}]}`, both); p.Outcome.Status != StatusTimeout || p.Outcome.Source != "" {
		t.Errorf("late: %+v", p.Outcome)
	}
	failing.Store(true)
	if _, p := ask(t, m, said+` now?"}]}`, both); p.Outcome.Status != StatusError {
		t.Errorf("refused: %+v", p.Outcome)
	}
}
