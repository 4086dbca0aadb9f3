package rest

import (
	"context"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/remote"
)

// Check tests, in this order, the service's health, its database, and a search, which also needs its
// embedder. It calls report after each test.
func (r *Client) Check(ctx context.Context, report func(remote.Check)) {
	if !remote.Reach(ctx, report, "healthcheck", r.Health,
		"start Graphiti, or correct memory.endpoint (now "+r.shown+")",
		"correct memory.endpoint (now "+r.shown+"), or, if this is Graphiti's MCP server, set memory.backend to graphiti-mcp") {
		return
	}
	remote.Run(ctx, report, "database", r.CheckDatabase, "look at Graphiti's log: its database (Neo4j 5.18 or newer) must be reachable")
	remote.Run(ctx, report, "search", func(ctx context.Context) error { return graphiti.TrySearch(ctx, r, "graphiti_proxy_check", "test") }, "look at Graphiti's log: its database (Neo4j 5.18 or newer), its embedding model and the model aliases text-embedding-3-small and gpt-4.1-nano must be reachable")
}
