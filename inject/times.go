package inject

import (
	"slices"
	"sync"
	"time"
)

// timed is the number of recent searches in the statistics.
const timed = 64

// times holds the durations of recent successful searches. It is safe for concurrent use.
type times struct {
	mu   sync.Mutex
	ring [timed]time.Duration
	n    int // total number
}

func (t *times) add(d time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ring[t.n%timed] = d
	t.n++
}

// SearchTimes returns the number of recent measured searches, and the median and the 90th
// percentile of their durations.
func (m *Planner) SearchTimes() (n int, half, most time.Duration) {
	m.times.mu.Lock()
	n = min(m.times.n, timed)
	all := slices.Clone(m.times.ring[:n])
	m.times.mu.Unlock()
	if n == 0 {
		return 0, 0, 0
	}
	slices.Sort(all)
	return n, all[(n-1)/2], all[(n-1)*9/10]
}
