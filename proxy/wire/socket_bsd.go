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
