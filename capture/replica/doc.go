// Package replica owns what several replicas share of the queue: a stream of
// turns in Redis, the states of its entries, what groups have had, and the lease
// of the replica that delivers. docs/adr/0002-replicas.md explains it.
//
// It must not know how a turn is delivered, nor Graphiti. Of our packages it may
// import cache/redis, capture/ledger and graphiti (scopes and session hashes).
package replica
