// Package stream relays the bodies of answers: byte for byte as they come, with
// a copy for a tee, to the end that the upstream itself gives them.
//
// It owns where a body ends, what waits for a client that is slow, the bounds of
// silence in a body, and the event loops that relay streams without a goroutine,
// a stack and a buffer for each. It must not know heads, nor what a body is
// about. Of our packages it may import proxy/contain, proxy/wire/listen and
// proxy/wire/sock.
//
// Read stream.go first.
package stream
