// Package inject owns what goes into a request: it decides which memory block
// stands before which message, recalls what is in it, and makes its lines, which no
// fact can leave. It keeps the promise that a block, once sent, is sent again. It
// owns the names of turns, and the notes on their work that end a session.
//
// It must not know of sockets, of the shape of a request body, of the answer to
// the request, or of how memories are written. Of our packages it may import
// dialect, memo, graphiti (types and ids) and graphiti/words; state reaches it
// through the interfaces declared here.
package inject
