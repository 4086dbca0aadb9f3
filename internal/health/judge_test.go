package health

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// TestOneFaultDoesNotHideAnother checks that a status with a failed search and a stalled
// queue reports both faults with their remedies.
func TestOneFaultDoesNotHideAnother(t *testing.T) {
	t.Parallel()
	now := time.Now()
	m := MemoryStatus{State: StateWorking}
	m.Judge(&Probe{At: now, Search: errors.New("no such model"), Since: now.Add(-time.Minute)}, &capture.QueueStatus{Stalled: &now, Pending: 3, Diagnosis: graphiti.WorkerDead}, nil)
	if !strings.Contains(m.Why, "no such model") || !strings.Contains(m.Why, "has stored none") || !strings.Contains(m.Remedy, graphiti.WorkerDead.Remedy()) || !m.Since.Equal(now.Add(-time.Minute)) {
		t.Errorf("got %+v, want both faults with their remedies", m)
	}
}

// TestRemedyHasNextTest checks that the remedy of a stall states the time of the next test.
func TestRemedyHasNextTest(t *testing.T) {
	t.Parallel()
	now, later := time.Now(), time.Now().Add(40*time.Second+500*time.Millisecond)
	for _, tc := range []struct {
		at   *time.Time
		want string
	}{{&later, "the next test is in 40 s"}, {&now, "a test is running"}, {nil, "a test is running"}} {
		var m MemoryStatus
		m.Judge(&Probe{At: now}, &capture.QueueStatus{Stalled: &now, NextTest: tc.at}, nil)
		if !strings.Contains(m.Remedy, tc.want) {
			t.Errorf("got remedy %q, want %q in it", m.Remedy, tc.want)
		}
	}
}
