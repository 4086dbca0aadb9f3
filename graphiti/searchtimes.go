package graphiti

import (
	"fmt"
	"time"
)

// SearchTime is the part of recall.timeout that a request waits for searches: the
// rest is for storing what was decided: an eighth, and at most 50 ms or, of a long
// timeout, a sixteenth.
func SearchTime(timeout time.Duration) time.Duration {
	return timeout - min(timeout/8, max(50*time.Millisecond, timeout/16))
}

// SearchTimes says how long the newest searches of a service took, and how long a
// request waits for one.
type SearchTimes struct {
	Count   int   `json:"count"`
	Half    int64 `json:"half_ms"` // half of them took so long at most
	Most    int64 `json:"most_ms"` // nine tenths
	Timeout int64 `json:"timeout_ms"`
}

// String says it in a sentence.
func (s *SearchTimes) String() string {
	return fmt.Sprintf("of the last %d searches half took up to %d ms, nine tenths up to %d ms; recall.timeout is %d ms",
		s.Count, s.Half, s.Most, s.Timeout)
}

// Late is what to do where typical searches take longer than a request waits;
// empty: they do not.
func (s *SearchTimes) Late() string {
	if s.Half < SearchTime(time.Duration(s.Timeout)*time.Millisecond).Milliseconds() {
		return ""
	}
	return fmt.Sprintf("set recall.timeout to %dms, or use a faster embedding model: the first question of a conversation goes without memory", (s.Most/100+2)*100)
}
