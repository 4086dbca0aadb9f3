// Package graphititest owns a stand-in for Graphiti's REST service (getzep/graphiti,
// server/graph_service) and its MCP servers, for tests and benchmarks. It answers the
// proxy's calls like the real service, and fails like it: accepted messages wait only in
// RAM, one worker processes them, and the first exception silently ends that worker, while
// the service still answers every later message with 202 and stays healthy
// (getzep/graphiti#1707).
//
// It has no model: a search finds stored facts by the words that they share with the query. It
// never imports testing.
package graphititest
