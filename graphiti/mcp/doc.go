// Package mcp owns the memory in Graphiti's MCP server (getzep/graphiti,
// mcp_server), of any age.
//
// It must not know Graphiti's REST service, requests or turns. Of our packages
// it may import graphiti and graphiti/remote.
package mcp
