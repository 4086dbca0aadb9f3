// Package rest owns the client for a memory in Graphiti's REST service
// (getzep/graphiti, server/graph_service).
package rest
