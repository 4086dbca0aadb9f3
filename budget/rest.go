package budget

import (
	"context"
	"runtime/metrics"
	"time"
)

const (
	// lookEvery is less than half of the two minutes after which the runtime
	// collects garbage in a process that does nothing, and reads much of the
	// program for that: it never has to.
	lookEvery = 50 * time.Second

	// atRest is what the process allocates in that time at most when it serves
	// nobody, in bytes.
	atRest = 128 << 10
)

// Rest gives back what is not needed, at once and while the process is at rest,
// until ctx ends.
func Rest(ctx context.Context) {
	GiveBack()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	heap := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	for w := (watch{}); ; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if metrics.Read(heap); w.rests(heap[0].Value.Uint64()) {
			GiveBack()
		}
	}
}

// watch notices when the process is at rest: by what it allocates, which says so
// of all that it does.
type watch struct {
	allocated uint64 // when it was looked at last
	quiet     int    // how often in a row it was at rest then
}

// rests reports whether something is to be given back, when so much was
// allocated since the start: when the process comes to rest, and at every other
// look from then on.
func (w *watch) rests(allocated uint64) bool {
	if w.quiet++; allocated-w.allocated > atRest {
		w.quiet = 0
	}
	w.allocated = allocated
	return w.quiet%2 == 1
}
