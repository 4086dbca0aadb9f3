package graphiti

import (
	"fmt"
	"time"
)

// SearchTime returns the part of recall.timeout for searches. The rest is for
// storing the decision: an eighth, but no more than 50 ms or a sixteenth, whichever
// is longer.
func SearchTime(timeout time.Duration) time.Duration {
	return timeout - min(timeout/8, max(50*time.Millisecond, timeout/16))
}

// SearchTimes says how long the newest searches of a service took, and how long a
// request waits for one.
type SearchTimes struct {
	Count   int   `json:"count"`
	Half    int64 `json:"half_ms"` // half of them took no longer
	Most    int64 `json:"most_ms"` // nine tenths took no longer
	Timeout int64 `json:"timeout_ms"`
}

// String returns the times in a sentence.
func (s *SearchTimes) String() string {
	return fmt.Sprintf("of the last %d searches half took up to %d ms, nine tenths up to %d ms; recall.timeout is %d ms",
		s.Count, s.Half, s.Most, s.Timeout)
}

// Late says what to do when half of the searches take longer than a request waits;
// empty if they do not.
func (s *SearchTimes) Late() string {
	if s.Half < SearchTime(time.Duration(s.Timeout)*time.Millisecond).Milliseconds() {
		return ""
	}
	return fmt.Sprintf("set recall.timeout to %dms, or use a faster embedding model: the first question of a conversation goes without memory", (s.Most/100+2)*100)
}
