// Package response owns the reading of answers while they are relayed: the tee that takes
// a bounded copy, the workers that decode it and pass it to the reader of its dialect,
// and the order in which answers are reported.
//
// It must not know what an answer is used for. It never blocks the relay that feeds it.
// Of our packages it imports only internal/budget and internal/dialect.
package response
