//go:build !unix

package sock

// Quiet cannot be asked here: a connection that its peer closed while it was
// idle is found by failing.
func (s Socket) Quiet() bool { return true }

// Left cannot be asked here: a client that left is noticed by the next write.
func Left([]Socket, []bool) {}
