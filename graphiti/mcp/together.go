package mcp

import (
	"context"
	"strings"
	"sync"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// manyMax bounds the lists of groups that are known to hold much.
const manyMax = 1024

// together is one question to several groups, and one call answers it where that
// loses nothing: where the server sent all that it found. Of groups that hold more, it
// sends what fits the question best in all of them, so that one takes the
// places of another; they are asked one by one.
type together struct {
	client *Client
	groups []string

	once  sync.Once
	found map[string][]graphiti.Fact // by group; nil: each is asked alone
}

// Together returns what searches those groups one by one, with one call for all of
// them where the server has one index. On FalkorDB each group is a graph of its own,
// which the server searches by itself anyway, and waits for the slowest.
func (m *Client) Together(groups []string) graphiti.Searcher {
	database := m.session.database.Load()
	if len(groups) < 2 || database == nil || *database != "neo4j" || !m.session.several.Load() || m.many.Contains(strings.Join(groups, "\x00")) {
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

func (t *together) ask(ctx context.Context, query string, max int) {
	limit := len(t.groups) * max
	facts, sent, err := t.client.search(ctx, t.groups, query, limit)
	if err != nil {
		return
	}
	if sent >= limit {
		t.client.many.Add(strings.Join(t.groups, "\x00"), struct{}{})
		return
	}
	t.found = make(map[string][]graphiti.Fact, len(t.groups))
	for _, g := range t.groups {
		count := map[bool]int{} // by whether it is an entity
		t.found[g] = nil        // it was searched, whatever is found
		for i := range facts {
			if f := &facts[i]; f.Group == g && count[f.Entity] < max {
				count[f.Entity]++
				t.found[g] = append(t.found[g], *f)
			}
		}
	}
}
