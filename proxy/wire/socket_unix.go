//go:build unix

package wire

import (
	"math"

	"golang.org/x/sys/unix"
)

// quiet reports whether nothing has arrived on an idle connection, neither
// data nor an end.
func (s socket) quiet() bool {
	if s == noSocket {
		return true
	}
	_, err := s.peek()
	return err == unix.EAGAIN //nolint:errorlint // a bare errno
}

// keptFiles is how many descriptors are kept for files, listeners, and the connections
// of the admin API and of the memory.
const keptFiles = 192

// RoomForClients returns how many clients the process has file descriptors for: two for
// each, one of them for the upstream, beside keptFiles. The Go runtime has raised the
// limit as far as it may.
func RoomForClients() int {
	var l unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &l) != nil || l.Cur > math.MaxInt32 {
		return math.MaxInt32
	}
	n := int(l.Cur) // #nosec G115 -- compared above
	return max((n-min(keptFiles, n/3))/2, 1)
}
