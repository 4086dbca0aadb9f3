package mcp

import (
	"context"
	"fmt"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/remote"
)

var toolSearchNodes = toolNames{"search_nodes", "search_memory_nodes"}

// Entities returns up to max entities of a group that match a query. Recall does not use
// them, for the reason given at Search.
func (m *Client) Entities(ctx context.Context, group, query string, max int) (list []graphiti.Entity, err error) {
	err = m.perGroups(ctx, toolSearchNodes, []string{group}, map[string]any{"query": query, "max_nodes": max}, func(_ string, call func(any) error) error {
		var answer struct {
			Nodes *[]struct {
				UUID, Name, Summary string
				Group               string `json:"group_id"`
			}
		}
		if err := call(&answer); err != nil {
			return err
		}
		if answer.Nodes == nil {
			return remote.ErrNotGraphiti
		}
		for _, n := range *answer.Nodes {
			if _, ok := where(group, n.Group, []string{group}); ok && len(list) < max && n.UUID != "" {
				list = append(list, graphiti.Entity{UUID: n.UUID, Name: n.Name, Summary: n.Summary})
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("search entities: %w", err)
	}
	return list, nil
}
