package inject

import (
	"sync/atomic"
	"time"
)

// epochs counts what is going on, so that one can wait for what began before
// a moment without keeping anything from beginning.
type epochs struct {
	now    atomic.Uint32
	inside [2]atomic.Int64 // by the last bit of the epoch
}

// enter returns the epoch for leave.
func (e *epochs) enter() uint32 {
	for {
		epoch := e.now.Load()
		e.inside[epoch&1].Add(1)
		if e.now.Load() == epoch {
			return epoch
		}
		e.leave(epoch)
	}
}

func (e *epochs) leave(epoch uint32) { e.inside[epoch&1].Add(-1) }

// wait returns when what is inside now has left, or after a while. It must not
// be called twice at the same time.
func (e *epochs) wait(most time.Duration) {
	before := e.now.Add(1) - 1
	for until := time.Now().Add(most); e.inside[before&1].Load() > 0 && time.Now().Before(until); {
		time.Sleep(time.Millisecond)
	}
}
