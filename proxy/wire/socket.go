package wire

import (
	"context"
	"errors"
	"net"
	"os"
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
	sc, ok := rawConn(c).(syscall.Conn)
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

// known reports whether there is a descriptor that can be asked.
func (s socket) known() bool { return s.fd >= 0 }

// rawConn returns the connection under all TLS, also under that to a forward proxy.
func rawConn(c net.Conn) net.Conn {
	for {
		t, ok := c.(interface{ NetConn() net.Conn })
		if !ok {
			return c
		}
		c = t.NetConn()
	}
}

// NoDescriptors reports whether an error says that the process, or the machine,
// has no descriptors left.
func NoDescriptors(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// IsTimeout reports whether an error says that something took too long.
func IsTimeout(err error) bool {
	var ne net.Error
	return errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded) ||
		errors.As(err, &ne) && ne.Timeout()
}
