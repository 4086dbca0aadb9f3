// Package mcp owns the client for a memory in Graphiti's MCP server (getzep/graphiti,
// mcp_server) of any version.
//
// It must not know about Graphiti's REST service, requests or turns. Of our packages it
// imports graphiti, graphiti/remote and graphiti/words.
package mcp
