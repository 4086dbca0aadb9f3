package wire

import "golang.org/x/sys/unix"

// haveLeft calls left for the links of disconnected clients. POLLRDHUP reports a FIN even
// after unread data.
func haveLeft(links []*link, left func(*link)) {
	polls := make([]unix.PollFd, len(links))
	for i, l := range links {
		polls[i] = unix.PollFd{Fd: int32(l.sock), Events: unix.POLLRDHUP} // #nosec G115
	}
	if _, err := unix.Poll(polls, 0); err != nil {
		return
	}
	for i, p := range polls {
		if p.Revents&(unix.POLLRDHUP|unix.POLLHUP|unix.POLLERR) != 0 {
			left(links[i])
		}
	}
}
