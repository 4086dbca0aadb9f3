package graphiti_test

import (
	"context"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// counted is a searcher that notes how many facts a search asks for.
type counted struct{ most int }

func (c *counted) Search(_ context.Context, _ []string, _ string, most int) ([]graphiti.Fact, error) {
	c.most = most
	return nil, nil
}

// TestTrySearch_CutsNoOther checks that a test of the search asks for no fewer facts than a search of recall,
// whose answer Graphiti would cut.
func TestTrySearch_CutsNoOther(t *testing.T) {
	const ofRecall = 24
	var c counted
	if err := graphiti.TrySearch(t.Context(), &c, "group", "test"); err != nil || c.most < ofRecall {
		t.Errorf("got %d facts and error %v, want at least %d facts", c.most, err, ofRecall)
	}
}
