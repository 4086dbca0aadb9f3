// Package listen accepts clients' connections and bounds them.
//
// It owns the listener, the count of open connections, in all and of one
// address, and what a client's connection needs beside net.Conn: deadlines for
// each read of a body and each write of an answer, and writes past fasthttp's
// server. It must not know requests, nor what they are about. Of our packages it
// may import proxy/wire/sock.
package listen
