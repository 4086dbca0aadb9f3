// Package inject owns the memory blocks of requests: it decides which memory block precedes which message of a request. It
// searches for facts, renders them so that no fact can escape its line, and repeats each
// sent block byte for byte. It also owns turn IDs and the notes about a session's work.
//
// It must not know sockets, body formats, answers or writes to memory. It imports only
// dialect, memo, graphiti (types and IDs) and graphiti/words of this module. State
// reaches it through the interfaces declared here.
package inject
