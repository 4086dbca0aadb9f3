package inject

import (
	"slices"
	"sync"
	"time"
)

// timed is how many of the newest searches are looked at.
const timed = 64

// times are how long the newest searches took that the memory answered. It is
// safe for concurrent use.
type times struct {
	mu   sync.Mutex
	ring [timed]time.Duration
	n    int // in all
}

func (t *times) add(d time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ring[t.n%timed] = d
	t.n++
}

// SearchTimes returns how many of the newest searches were measured, and the times
// within which half and nine tenths of them ended.
func (m *Memory) SearchTimes() (n int, half, most time.Duration) {
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
