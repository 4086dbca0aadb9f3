// Package response owns the parsing of answers during their relay: a tee takes a bounded copy,
// workers decode it and pass it to the reader of its dialect, and a queue reports answers
// in order.
//
// It must not know the purpose of an answer, and never blocks the relay. Of the module's
// packages it imports only internal/budget and internal/dialect.
package response
