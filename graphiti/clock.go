package graphiti

import "time"

// clockPrecision is how far two clocks may be apart without being different:
// the header has whole seconds, and answers take a moment.
const clockPrecision = 2 * time.Second

// Now is the time that a message may speak of at most, to a backend with that
// clock: ours, unless the backend's is clearly behind it.
func Now(clock time.Time) time.Time {
	now := time.Now()
	if !clock.IsZero() && now.Sub(clock) >= clockPrecision {
		return clock
	}
	return now
}
