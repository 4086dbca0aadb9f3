package budget

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// lookEvery is how often Rest checks whether the process is at rest.
	lookEvery = time.Minute

	// atRest is how many bytes the process allocates in that time, at most, while it
	// serves nobody.
	atRest = 128 << 10

	// worthwhile is from how many free bytes on Rest gives RAM back although nothing
	// has happened, such as after a cache's entries have expired.
	worthwhile = 4 << 20
)

// Rest calls GiveBack at once and whenever the process comes to rest, until ctx ends.
func Rest(ctx context.Context) {
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
			GiveBack()
		}
	}
}

// watch notices when the process comes to rest, by how much it allocates: nothing that
// it does goes without.
type watch struct {
	allocated uint64 // at the last check
	busy      bool   // at the last check
}

// rests reports whether to give RAM back. allocated is what was allocated since the
// start, and free how much is free. While nothing happens and little is free it returns
// false: giving back would cost more than everything else that happens then.
func (w *watch) rests(allocated, free uint64) bool {
	before := *w
	w.busy, w.allocated = allocated-before.allocated > atRest, allocated
	return !w.busy && (before.busy || free > worthwhile)
}

// GiveBack returns to the machine what only the start of the process needed: free RAM,
// and pages of the program, which are read again when they are needed.
func GiveBack() {
	debug.FreeOSMemory()
	dropProgram()
}
