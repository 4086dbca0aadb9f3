// Package response owns how answers are read beside the way to the client: the
// tee that takes a bounded copy, the workers that decode it and give it to the
// reader of its dialect, and the order in which what they read is reported.
//
// It must not know what is made of an answer. It never blocks the relay that
// feeds it. Of our packages it may import budget, dialect and dialect/sse.
package response
