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
// which its owner must see to.
type socket int

// noSocket stands for a connection without a descriptor, such as a pipe.
const noSocket socket = -1

// socketOf finds the socket under a connection.
func socketOf(c net.Conn) socket {
	s := noSocket
	if sc, ok := rawConn(c).(syscall.Conn); ok {
		if raw, err := sc.SyscallConn(); err == nil {
			_ = raw.Control(func(fd uintptr) { s = socket(fd) }) // #nosec G115 -- a descriptor fits
		}
	}
	return s
}

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

// MoreFiles is the remedy for too few file descriptors.
const MoreFiles = "raise the limit of open files (ulimit -n, LimitNOFILE of systemd), or lower limits.connections"

// TooFew reports whether there are descriptors for less than half of the connections
// that the limit allows: few operators ever reach the limit.
func TooFew(room, connections int) bool { return room < connections/2 }

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
