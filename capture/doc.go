// Package capture owns what comes out of an answer: it makes turns of answers,
// keeps them on disk until the memory is known to hold them, and has them
// delivered.
//
// It must not know of the client's connection, of an answer's bytes, or of how a
// request was changed; it never fails a request. Of our packages it may import
// dialect, graphiti (types and ids), its own below it but capture/response,
// cache/sqlite, cache/redis and graphiti/words.
package capture
