//go:build !unix

package sock

import "math"

// RoomForClients cannot be asked here.
func RoomForClients() int { return math.MaxInt32 }
