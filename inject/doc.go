// Package inject owns the memory blocks of requests: it decides which memory block precedes which message of a request. It
// searches for facts, renders them so that no fact can escape its line, and repeats each
// sent block byte for byte. It also owns turn IDs and the notes about a session's work.
//
// State reaches it through the interfaces declared here.
package inject
