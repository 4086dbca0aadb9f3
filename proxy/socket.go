package proxy

import (
	"net"
	"syscall"
)

// socket is the file descriptor under a connection, for questions that
// net.Conn cannot answer. It is valid only as long as the connection is open,
// which its owner must see to. The zero of fd is replaced by noSocket.
type socket struct{ fd int }

// noSocket stands for a connection without a descriptor, such as a pipe.
var noSocket = socket{fd: -1}

// socketOf finds the socket under a connection.
func socketOf(c net.Conn) socket {
	if t, ok := c.(interface{ NetConn() net.Conn }); ok { // TLS
		c = t.NetConn()
	}
	sc, ok := c.(syscall.Conn)
	if !ok {
		return noSocket
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return noSocket
	}
	s := noSocket
	if raw.Control(func(fd uintptr) { s.fd = int(fd) }) != nil { // #nosec G115 -- a descriptor fits
		return noSocket
	}
	return s
}
