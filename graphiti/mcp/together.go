package mcp

import (
	"context"
	"sync"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// together is one question to several groups. One call answers it: each costs the
// server an embedding and a look into its index, however many groups it names. Who is not
// answered by it is asked alone.
type together struct {
	client *Client
	groups []string

	once  sync.Once
	found map[string][]graphiti.Fact // by group
}

// Together returns what searches those groups one by one, with one call for all of
// them where the server has one index. On FalkorDB each group is a graph of its own,
// which the server searches by itself anyway, and waits for the slowest.
func (m *Client) Together(groups []string) graphiti.Searcher {
	database := m.session.database.Load()
	if len(groups) < 2 || database == nil || *database != "neo4j" || !m.session.several.Load() {
		return m
	}
	return &together{client: m, groups: groups}
}

// Search implements graphiti.Searcher for one of the groups. The query and max are
// the same for all of them.
func (t *together) Search(ctx context.Context, groups []string, query string, max int) ([]graphiti.Fact, error) {
	t.once.Do(func() { t.ask(ctx, query, max) })
	if facts, ok := t.found[groups[0]]; ok {
		return facts, nil
	}
	return t.client.Search(ctx, groups, query, max)
}

// ask makes the one call. It answers no group where it fails, and where there may
// be more than were sent none of which there are few: another one's may
// have taken their places.
func (t *together) ask(ctx context.Context, query string, max int) {
	few := max / 3
	limit := max + (len(t.groups)-1)*few
	facts, sent, err := t.client.search(ctx, t.groups, query, limit)
	if err != nil {
		return
	}
	t.found = make(map[string][]graphiti.Fact, len(t.groups))
	for _, g := range t.groups {
		count := map[bool]int{} // by whether it is an entity
		var own []graphiti.Fact
		for i := range facts {
			if f := &facts[i]; f.Group == g && count[f.Entity] < max {
				count[f.Entity]++
				own = append(own, *f)
			}
		}
		if sent < limit || count[false] >= few {
			t.found[g] = own
		}
	}
}
