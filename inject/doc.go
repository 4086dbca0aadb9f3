// Package inject owns what goes into a request: it decides which memory block
// stands before which message, and recalls what is in it. It keeps the promise
// that a block, once sent, is sent again.
//
// It must not know of sockets, of the shape of a request body, of the answer to
// the request, or of how memories are written. Of our packages it may import
// deadline, dialect, graphiti (types and ids) and what tells words apart,
// graphiti/words and graphiti/person; state reaches it through the interfaces
// declared here.
package inject
