// Package wire moves the bytes of requests and answers: it accepts connections, reads
// bodies within limits, forwards each request over a pooled upstream connection, relays
// the answer unchanged as it arrives, and tunnels WebSockets.
//
// It owns the listener, the limits of connections, heads and trailers, the upstream
// connections and their pool (also through a forward proxy), the framing of bodies, the
// detection of client disconnects, and the system calls for sockets. A bug ends only the
// request that triggered it.
//
// Read exchange.go first, then stream.go.
package wire
