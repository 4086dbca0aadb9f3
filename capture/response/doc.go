// Package response owns the parsing of answers during their relay: a tee passes the events of
// a stream to the reader of its dialect, or keeps a bounded copy of another body, and a queue
// decodes and reports answers in order. It never blocks the relay.
package response
