// Package capture owns what comes out of an answer: it assembles streamed and
// plain answers from a bounded copy of their bytes, makes turns of them, keeps
// turns on disk until the memory is known to hold them, and delivers them.
//
// It must not know of the client's connection or of how a request was
// changed; it never blocks the relay that feeds it and never fails a request.
// Of our packages it may import graphiti (types and ids), capture/redact,
// cache/sqlite and cache/redis.
package capture
