package capture

import (
	"context"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
)

// leaves is the context of a caller that gives up after the first check of Err.
type leaves struct {
	context.Context
	asked atomic.Bool
}

func (l *leaves) Done() <-chan struct{} {
	gone := make(chan struct{})
	close(gone)
	return gone
}

func (l *leaves) Err() error {
	if l.asked.Swap(true) {
		return context.Canceled
	}
	return nil
}

// TestTurnWhoseSenderGivesUp checks that Add reports a turn as stored although its caller
// gives up meanwhile. A stored turn that was reported as failed would wait until the next
// start.
func TestTurnWhoseSenderGivesUp(t *testing.T) {
	s := openLedger(t, filepath.Join(t.TempDir(), "spool.db"))
	defer s.Close()
	for i := range 20 {
		all, err := s.Add(&leaves{Context: context.Background()}, []ledger.Turn{turn(fmt.Sprint(i), "a")}, time.Now())
		if err != nil || len(all) != 1 || len(all[0].Groups) != 1 {
			t.Fatalf("turn %d: %+v, %v", i, all, err)
		}
	}
}
