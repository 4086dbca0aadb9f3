// Package proxy owns the way of a request: it accepts requests, forwards them and
// relays the answers, byte for byte, asks the memory packages what to insert, and hands
// them a copy of what was answered.
//
// It must not know how a memory is searched, chosen, formatted, kept or
// delivered, nor where configuration comes from: what remembers reaches it
// mostly through the interfaces of memory.go.
//
// Read handler.go first: it is the way of every request, from top to bottom.
package proxy
