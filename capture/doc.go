// Package capture owns what comes out of an answer: it makes turns of answers, holds
// those whose end is awaited (tool loops, conversations that the provider holds, lanes
// of a WebSocket), and records them: in the file of the embedded memory, or in an
// outbox, until a memory that is elsewhere is known to hold them.
//
// It must not know of the client's connection, of an answer's bytes, or of how a
// request was changed; it never fails a request. Of our packages it may import
// dialect, graphiti (types and ids), its subpackages except capture/response,
// cache/sqlite, cache/redis and graphiti/words.
package capture
