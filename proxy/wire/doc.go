// Package wire moves the bytes of requests and answers: it accepts connections,
// reads bodies within bounds, forwards a request over a pooled upstream connection,
// relays the answer as it comes, and tunnels WebSockets.
//
// It owns the listener and the bounds of connections, heads and trailers, the way to
// an upstream (also through a forward proxy) and its pool of connections, where a
// body ends, the event loops that relay streams without a goroutine for each, the
// watch for clients that leave, and what is asked of the operating system about
// sockets. A bug costs the request that met it. It must not know dialects, callers
// or memory: what is inserted are pieces of bytes, and a Tee gets a copy of the
// answer. Of our packages it may import budget.
//
// Read exchange.go first, then stream.go.
package wire
