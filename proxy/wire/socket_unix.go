//go:build unix && !linux

package wire

import "golang.org/x/sys/unix"

// quiet reports whether nothing has arrived on an idle connection, neither
// data nor an end.
func (s socket) quiet() bool {
	if s.fd < 0 {
		return true
	}
	p := [1]unix.PollFd{{Fd: int32(s.fd), Events: unix.POLLIN}}
	n, err := unix.Poll(p[:], 0)
	return err == nil && n == 0
}

// markLeft marks in gone which of the sockets their peers have shut. Without
// POLLRDHUP an end that stands behind unread data is not seen.
func markLeft(socks []socket, gone []bool) {
	var b [1]byte
	for i, s := range socks {
		n, _, err := unix.Recvfrom(s.fd, b[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
		gone[i] = n == 0 && err == nil || err == unix.ECONNRESET //nolint:errorlint // a bare errno
	}
}
