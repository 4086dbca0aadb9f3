package graphiti

import "time"

// clockPrecision is the tolerated clock difference. The Date header has whole seconds, and
// answers take a moment.
const clockPrecision = 2 * time.Second

// Now returns the latest timestamp for a message to a backend: the local time, or the
// backend's clock if that is clearly slower.
func Now(clock time.Time) time.Time {
	now := time.Now()
	if !clock.IsZero() && now.Sub(clock) >= clockPrecision {
		return clock
	}
	return now
}
