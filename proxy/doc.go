// Package proxy owns the path of a request: it accepts requests, forwards them and
// relays the answers, byte for byte. It asks the memory packages for the blocks to
// insert, and gives them a copy of each answer.
//
// It uses the memory packages mostly through the interfaces in memory.go.
//
// Read handler.go first: it contains the path of every request, from top to bottom.
package proxy
