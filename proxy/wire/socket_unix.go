//go:build unix

package wire

import (
	"math"

	"golang.org/x/sys/unix"
)

// quiet reports whether an idle connection has received neither data nor a
// FIN.
func (s socket) quiet() bool {
	if s == noSocket {
		return true
	}
	_, err := s.peek()
	return err == unix.EAGAIN //nolint:errorlint // a bare errno
}

// peek reads a byte without consuming it: 0 bytes without an error mean EOF.
func (s socket) peek() (int, error) {
	var b [1]byte
	n, _, err := unix.Recvfrom(int(s), b[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
	return n, err
}

// keptFiles is the number of descriptors reserved for files, listeners, and the
// connections of the admin API and the memory.
const keptFiles = 192

// RoomForClients returns how many clients the file descriptors allow, after reserving
// keptFiles: each client needs two, one of them for the upstream. The Go runtime has
// already raised the soft limit.
func RoomForClients() int {
	var l unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &l) != nil || l.Cur > math.MaxInt32 {
		return math.MaxInt32
	}
	n := int(l.Cur) // #nosec G115 -- compared above
	return max((n-min(keptFiles, n/3))/2, 1)
}
