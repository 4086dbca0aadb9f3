package inject

import (
	"context"
	"strings"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// TestSearchFromBeforeAChangeIsNotCached: a turn that is delivered while its
// group is searched is found by the next question.
func TestSearchFromBeforeAChangeIsNotCached(t *testing.T) {
	cache := &fakeFacts{}
	m := memory(t, func(_ context.Context, group, _ string) ([]graphiti.Fact, error) {
		cache.mu.Lock()
		defer cache.mu.Unlock()
		cache.version += group
		return nil, nil
	}, &fakeDecisions{}, cache)
	ask(t, m, turn1, both)
	if cache.stored != 0 {
		t.Errorf("%d results were cached", cache.stored)
	}
}

// pairs notes which groups are searched at the same time.
type pairs struct {
	searchFunc
	seen []string
}

func (p *pairs) Together(groups []string) graphiti.Searcher {
	p.seen = append(p.seen, strings.Join(groups, " "))
	return p.searchFunc
}

// TestGroupsThatAreSearchedTogether are those of which nothing fresh is known.
func TestGroupsThatAreSearchedTogether(t *testing.T) {
	for _, tc := range []struct {
		name  string
		known string // a group
		stale bool
		want  string
	}{
		{"nothing is known", "", false, "s u"},
		{"one group is cached", "u", false, "s"},
		{"one group is stale", "u", true, "s u"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			cache := &fakeFacts{stale: tc.stale}
			m := memory(t, always("a fact"), &fakeDecisions{}, cache)
			p := &pairs{searchFunc: always("a fact")}
			o := *m.opts()
			o.Search = p
			m.Set(o)
			if tc.known != "" {
				cache.facts = map[string][]graphiti.Fact{tc.known + "|one": facts("known")}
			}
			ask(t, m, turn1, both)
			if len(p.seen) != 1 || p.seen[0] != tc.want {
				t.Errorf("searched together: %q", p.seen)
			}
		})
	}
}
