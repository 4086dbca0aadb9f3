package budget

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// lookEvery is the interval of Rest's checks.
	lookEvery = time.Minute

	// atRest is the most bytes that an idle process allocates between two
	// checks.
	atRest = 128 << 10

	// worthwhile is the number of free bytes from which Rest releases RAM even without
	// activity, such as after cache entries have expired.
	worthwhile = 4 << 20
)

// Rest calls GiveBack immediately, and release and GiveBack whenever the process becomes idle,
// until ctx ends. release empties caches: small entries that outlive their neighbors would keep
// pages in use.
func Rest(ctx context.Context, release func()) {
	GiveBack()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	heap := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}, {Name: "/memory/classes/heap/free:bytes"}}
	for w := (watch{busy: true}); ; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if metrics.Read(heap); w.rests(heap[0].Value.Uint64(), heap[1].Value.Uint64()) {
			release()
			GiveBack()
		}
	}
}

// watch detects when the process becomes idle, by its allocations: all activity
// allocates.
type watch struct {
	allocated uint64 // at the last check
	busy      bool   // at the last check
}

// rests reports whether to release RAM. allocated is the total allocated since the start,
// and free the free RAM. It returns false for an idle process with little free RAM:
// releasing it would cost more than all other activity.
func (w *watch) rests(allocated, free uint64) bool {
	before := *w
	w.busy, w.allocated = allocated-before.allocated > atRest, allocated
	return !w.busy && (before.busy || free > worthwhile)
}

// GiveBack returns RAM that only the start needed to the machine: free RAM, and pages of
// the program, which are loaded again on demand.
func GiveBack() {
	debug.FreeOSMemory()
	dropProgram()
}
