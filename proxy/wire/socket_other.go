//go:build !unix

package wire

// quiet cannot be asked here: a connection that its peer closed while it was
// idle is found by failing.
func (s socket) quiet() bool { return true }

// markLeft cannot be asked here: a client that left is noticed by the next write.
func markLeft([]socket, []bool) {}
