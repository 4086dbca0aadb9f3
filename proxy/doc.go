// Package proxy owns the client's connection and the upstream's: it accepts
// requests, forwards them and relays the answers, byte for byte, and asks the
// memory packages what to insert and hands them a copy of what was answered.
//
// It must not know how a memory is searched, chosen, formatted, kept or
// delivered, nor where configuration comes from: what remembers reaches it
// through the interfaces of memory.go.
//
// Read handler.go first: it is the way of every request, from top to bottom.
package proxy
