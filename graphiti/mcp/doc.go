// Package mcp owns the client for a memory in Graphiti's MCP server (getzep/graphiti,
// mcp_server) of any version.
package mcp
