package embedded

import (
	"strings"
	"testing"
	"time"
)

// TestDaysAreLocal: a line has the person's day.
func TestDaysAreLocal(t *testing.T) {
	before := time.Local
	t.Cleanup(func() { time.Local = before })
	for zone, hours := range map[string]int{"Shanghai": 8, "Los Angeles": -8, "Auckland": 13} {
		time.Local = time.FixedZone(zone, hours*3600)
		now := time.Now()
		midnight := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, time.Local)
		for _, at := range []time.Time{midnight.Add(-23 * time.Hour), midnight.Add(-time.Hour)} {
			h := hit{row: &row{role: "user", content: "We ate soup.", said: at}}
			if got, want := h.fact("g").Text, at.Format(time.DateOnly); !strings.Contains(got, want) {
				t.Errorf("%s: %q, want the day %s", zone, got, want)
			}
		}
	}
}
