// Package inject owns what goes into a request: it decides which memory block stands
// before which message, searches for the facts of a block, and writes its lines, which no
// fact can leave. It keeps the promise that a block, once sent, is sent again. It owns
// the ids of turns, and the notes on what was done in a session.
//
// It must not know of sockets, of the shape of a request body, of the answer to
// the request, or of how memories are written. Of our packages it may import
// dialect, memo, graphiti (types and ids) and graphiti/words; state reaches it
// through the interfaces declared here.
package inject
