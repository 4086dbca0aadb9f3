// Package deliver owns the way of a turn from pending to delivered: what is
// sent to the memory, how many turns are in flight, what proves that they
// arrived or were lost, and what is sent again. design.md explains it.
//
// It must not know how turns are stored, nor who shares the queue: a Ledger
// stands for that. Of our packages it may
// import graphiti and capture/ledger (the row of a turn).
package deliver
