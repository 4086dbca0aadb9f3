package deliver

import (
	"testing"
	"time"
)

// TestPace: the pace follows the last minutes, and is unknown without turns in them.
func TestPace(t *testing.T) {
	start := time.Unix(1000, 0)
	every := func(gap time.Duration, n, turns int) (p pace, end time.Time) {
		for i := range n {
			end = start.Add(time.Duration(i) * gap)
			p.add(turns, end)
		}
		return p, end
	}
	for name, tc := range map[string]struct {
		gap      time.Duration
		n, turns int
		after    time.Duration
		want     float64
	}{
		"nothing":            {time.Second, 0, 1, 0, 0},
		"one answer":         {time.Second, 1, 50, time.Minute, 0},
		"too early":          {time.Second, 5, 1, 0, 0},
		"a turn a second":    {time.Second, 61, 1, 0, 60},
		"many at once":       {10 * time.Second, 13, 20, 0, 120},
		"several a second":   {100 * time.Millisecond, 601, 1, 0, 590},
		"nothing any more":   {time.Second, 61, 1, time.Hour, 0},
		"longer than counts": {time.Second, 3600, 1, 0, 60},
	} {
		p, end := every(tc.gap, tc.n, tc.turns)
		if got := p.perMinute(end.Add(tc.after)); got < tc.want-1 || got > tc.want+1 {
			t.Errorf("%s: got %.1f turns a minute, want %.0f", name, got, tc.want)
		}
		if len(p) > 302 {
			t.Errorf("%s: got %d entries, want no more than seconds", name, len(p))
		}
	}
}
