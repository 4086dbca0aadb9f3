// Package replica owns the queue state that replicas share: a stream of turns in Redis, the
// states of its entries, the turns of each group, and the lease of the delivering replica.
// docs/adr/0002-replicas.md explains it.
//
// It must not know how a turn is delivered, nor Graphiti. Of the module's packages it may
// import cache/redis, capture/ledger and graphiti (scopes and session hashes).
package replica
