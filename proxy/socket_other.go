//go:build !unix

package proxy

// quiet cannot be asked here: a connection that its peer closed while it was
// idle is found by failing.
func (s socket) quiet() bool { return true }

// left cannot be asked here: a client that left is noticed by the next write.
func left([]socket, []bool) {}
