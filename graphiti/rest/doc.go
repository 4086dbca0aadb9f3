// Package rest owns the memory in Graphiti's REST service (getzep/graphiti,
// server/graph_service).
//
// It must not know Graphiti's MCP server, requests or turns. Of our packages it
// may import graphiti and graphiti/remote.
package rest
