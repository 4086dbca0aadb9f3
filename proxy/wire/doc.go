// Package wire moves the bytes of requests and answers: it accepts connections,
// reads bodies within bounds, forwards a request over a pooled upstream connection,
// relays the answer as it comes, and tunnels WebSockets.
//
// It owns the listener, the bounds of connections, heads and trailers, the
// connections to upstreams (also through a forward proxy) and their pool, the ends of
// bodies, the event loops that relay streams without a goroutine for each, the watch
// for clients that leave, and the questions to the operating system about sockets. A
// bug ends only the request that met it. It must not know about dialects, callers or
// memory: an insert is just bytes, and a Tee gets a copy of the answer. Of our
// packages it imports only budget.
//
// Read exchange.go first, then stream.go.
package wire
