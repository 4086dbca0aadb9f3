package inject

import (
	"context"
	"testing"

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
