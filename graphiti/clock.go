package graphiti

import "time"

// clockPrecision is the difference of two clocks that we ignore: the Date header
// has whole seconds, and an answer takes a moment.
const clockPrecision = 2 * time.Second

// Now returns the latest timestamp that a message to a backend may have: our time,
// or the backend's clock if that is clearly behind.
func Now(clock time.Time) time.Time {
	now := time.Now()
	if !clock.IsZero() && now.Sub(clock) >= clockPrecision {
		return clock
	}
	return now
}
