package wire

import (
	"context"
	"errors"
	"net"
	"os"
	"syscall"
)

// socket is the file descriptor of a connection, for system calls that net.Conn does not
// offer. It is valid only while its owner keeps the connection open.
type socket int

// noSocket stands for a connection without a descriptor, such as a pipe.
const noSocket socket = -1

// socketOf returns the socket of a connection, or noSocket.
func socketOf(c net.Conn) socket {
	s := noSocket
	if sc, ok := rawConn(c).(syscall.Conn); ok {
		if raw, err := sc.SyscallConn(); err == nil {
			_ = raw.Control(func(fd uintptr) { s = socket(fd) }) // #nosec G115 -- a descriptor fits
		}
	}
	return s
}

// rawConn returns the connection below all TLS layers, including TLS to a forward proxy.
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

// TooFew reports whether the descriptors allow fewer than half of the configured
// connections. Half is enough, because few operators ever reach the limit.
func TooFew(room, connections int) bool { return room < connections/2 }

// NoDescriptors reports whether an error means that the process or the machine has no
// descriptors left.
func NoDescriptors(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// IsTimeout reports whether an error is a timeout.
func IsTimeout(err error) bool {
	var ne net.Error
	return errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded) ||
		errors.As(err, &ne) && ne.Timeout()
}
