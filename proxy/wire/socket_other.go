//go:build !unix

package wire

import "math"

// quiet cannot be asked here: a connection that its peer closed while it was
// idle is found by failing.
func (s socket) quiet() bool { return true }

// haveLeft cannot be asked here: a client that left is noticed by the next write.
func haveLeft([]*link, func(*link)) {}

// RoomForClients cannot be asked here.
func RoomForClients() int { return math.MaxInt32 }
