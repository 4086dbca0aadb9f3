//go:build unix && !linux

package wire

import "golang.org/x/sys/unix"

// haveLeft calls left for the links of disconnected clients. Without POLLRDHUP it cannot
// see a FIN after unread data.
func haveLeft(links []*link, left func(*link)) {
	for _, l := range links {
		if n, err := l.sock.peek(); n == 0 && err == nil || err == unix.ECONNRESET { //nolint:errorlint // a bare errno
			left(l)
		}
	}
}

// peek reads a byte without consuming it: 0 bytes without an error mean EOF.
func (s socket) peek() (int, error) {
	var b [1]byte
	n, _, err := unix.Recvfrom(int(s), b[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
	return n, err
}
