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
