//go:build unix && !linux

package wire

import "golang.org/x/sys/unix"

// haveLeft calls left for the links whose clients have shut their connections. Without
// POLLRDHUP an end that stands behind unread data is not seen.
func haveLeft(links []*link, left func(*link)) {
	var b [1]byte
	for _, l := range links {
		n, _, err := unix.Recvfrom(int(l.sock), b[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
		if n == 0 && err == nil || err == unix.ECONNRESET { //nolint:errorlint // a bare errno
			left(l)
		}
	}
}
