// Package rest owns the client for a memory in Graphiti's REST service
// (getzep/graphiti, server/graph_service).
//
// It must not know about Graphiti's MCP server, requests or turns. Of our packages it
// imports graphiti and graphiti/remote.
package rest
