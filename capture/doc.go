// Package capture owns what comes out of an answer: it gives a bounded copy of
// its bytes to the reader of its dialect, makes turns of answers, keeps turns on
// disk until the memory is known to hold them, and delivers them.
//
// It must not know of the client's connection or of how a request was
// changed; it never blocks the relay that feeds it and never fails a request.
// Of our packages it may import budget, dialect, dialect/sse, graphiti (types and
// ids), capture/ledger, capture/redact, cache/sqlite and cache/redis.
package capture
