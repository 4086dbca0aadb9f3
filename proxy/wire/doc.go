// Package wire moves the bytes of requests and answers: it reads bodies within
// bounds, forwards a request over a pooled upstream connection, relays the
// answer as it comes, and tunnels WebSockets.
//
// It owns heads, trailers, the pool of upstream connections,
// the watch for clients that leave, and the frames of WebSockets. It must not
// know dialects, callers or memory: what is inserted are pieces of bytes, and a
// Tee gets a copy of the answer. Of our packages it may import budget,
// proxy/contain, proxy/wire/connect, proxy/wire/listen, proxy/wire/sock and
// proxy/wire/stream.
//
// Read exchange.go first.
package wire
