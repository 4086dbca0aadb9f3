// Package graphititest owns a stand-in for Graphiti's REST service
// (getzep/graphiti, server/graph_service) for tests and benchmarks. It
// answers the calls that the proxy makes as the real one does, and fails as
// the real one does: what it accepts waits only in RAM, one worker works it off, and the
// first exception ends that worker in silence, while the service still answers every
// later message with 202 and the healthcheck stays green
// (getzep/graphiti#1707).
//
// It has no model: a search finds stored messages by the words they share
// with the query. It must not be linked into the proxy, never imports testing,
// and imports none of our packages.
package graphititest
