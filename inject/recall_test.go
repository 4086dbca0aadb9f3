package inject

import (
	"context"
	"testing"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// TestSearchFromBeforeAChangeIsNotCached checks that results are not cached if the group
// changes during the search, so that the next question finds the new turn.
func TestSearchFromBeforeAChangeIsNotCached(t *testing.T) {
	cache := &fakeFacts{}
	m := memory(t, func(_ context.Context, group, _ string) ([]graphiti.Fact, error) {
		cache.mu.Lock()
		defer cache.mu.Unlock()
		cache.version++
		return nil, nil
	}, &fakeDecisions{}, cache)
	ask(t, m, turn1, both)
	if cache.stored != 0 {
		t.Errorf("%d results were cached", cache.stored)
	}
}

// TestFunctionWordsAreSearched checks that a service is searched for a question of function
// words, together with the earlier question. A memory that weighs words would find nothing.
func TestFunctionWordsAreSearched(t *testing.T) {
	const body = `{"messages":[{"role":"user","content":"When is my sister's birthday?"},{"role":"assistant","content":"In May."},{"role":"user","content":"and his?"}]}`
	found := always("His birthday is in June")
	m := New(Services{Search: service{found}}, targets{}, RecallSettings{Timeout: time.Minute, Background: time.Minute, MaxFacts: 12, Asked: 24, MaxChars: 2000, MinScore: 0.25})
	t.Cleanup(m.Close)
	if _, p := ask(t, m, body, both); p.Outcome.Facts != 1 {
		t.Errorf("a service: %+v", p.Outcome)
	}
	m = memory(t, found, &fakeDecisions{}, &fakeFacts{})
	m.opts().MinScore = 0.25
	if _, p := ask(t, m, body, both); p.Outcome.Reason != ReasonRoutine {
		t.Errorf("one that weighs: %+v", p.Outcome)
	}
}
