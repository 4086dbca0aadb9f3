package wire

import "golang.org/x/sys/unix"

// quiet reports whether nothing has arrived on an idle connection, neither
// data nor an end.
func (s socket) quiet() bool {
	if s.fd < 0 {
		return true
	}
	p := [1]unix.PollFd{{Fd: int32(s.fd), Events: unix.POLLIN | unix.POLLRDHUP}} // #nosec G115
	n, err := unix.Poll(p[:], 0)
	return err == nil && n == 0
}

// markLeft marks in gone which of the sockets their peers have shut. POLLRDHUP
// tells of a FIN even when unread data stands before it.
func markLeft(socks []socket, gone []bool) {
	polls := make([]unix.PollFd, len(socks))
	for i, s := range socks {
		polls[i] = unix.PollFd{Fd: int32(s.fd), Events: unix.POLLRDHUP} // #nosec G115
	}
	if _, err := unix.Poll(polls, 0); err != nil {
		return
	}
	for i, p := range polls {
		gone[i] = p.Revents&(unix.POLLRDHUP|unix.POLLHUP|unix.POLLERR) != 0
	}
}
