// Package inject owns what goes into a request: it reads a conversation out
// of a request body without decoding it, decides which memory block stands
// before which message, and splices those bytes in. It keeps the promise that
// a block, once sent, is sent again.
//
// It must not know of sockets, of the answer to the request, or of how
// memories are written. Of our packages it may import graphiti (types and
// ids) only; state reaches it through the interfaces declared here.
package inject
