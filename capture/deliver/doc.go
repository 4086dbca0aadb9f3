// Package deliver owns the way of turns from pending to delivered: it decides what to send, how many
// turns may be in flight, the proofs of an arrival or a loss, and which turns to send again.
// design.md explains it.
//
// It must not know how turns are stored or which processes share the queue: the Ledger
// interface hides both. Of the module's packages it may import graphiti and capture/ledger
// (the row of a turn).
package deliver
