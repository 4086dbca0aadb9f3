package graphiti

import (
	"fmt"
	"time"
)

// SearchTime returns the part of recall.timeout for searches. The rest is for storing the
// decision: an eighth, but at most 50 ms or a sixteenth, whichever is longer.
func SearchTime(timeout time.Duration) time.Duration {
	return timeout - min(timeout/8, max(50*time.Millisecond, timeout/16))
}

// SearchTimes summarizes the durations of a service's recent searches.
type SearchTimes struct {
	Count   int   `json:"count"`
	Half    int64 `json:"half_ms"` // median
	Most    int64 `json:"most_ms"` // 90th percentile
	Timeout int64 `json:"timeout_ms"`
}

// String returns the times as a sentence.
func (s *SearchTimes) String() string {
	return fmt.Sprintf("of the last %d searches half took up to %d ms, nine tenths up to %d ms; recall.timeout is %d ms",
		s.Count, s.Half, s.Most, s.Timeout)
}

// Late returns a remedy if the median search exceeds a request's wait, or "".
func (s *SearchTimes) Late() string {
	if s.Half < SearchTime(time.Duration(s.Timeout)*time.Millisecond).Milliseconds() {
		return ""
	}
	return fmt.Sprintf("set recall.timeout to %dms, or use a faster embedding model: the first question of a conversation goes without memory", (s.Most/100+2)*100)
}
