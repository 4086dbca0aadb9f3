package budget

import (
	"context"
	"runtime/metrics"
	"time"
)

const (
	// lookEvery is how long next to nothing happens until the process is at
	// rest.
	lookEvery = time.Minute

	// atRest is what the process allocates in that time at most when it serves
	// nobody, in bytes.
	atRest = 128 << 10

	// worthwhile is how much free memory is given back although nothing has
	// happened, as when what was kept for a while has ended.
	worthwhile = 4 << 20
)

// Rest gives back what is not needed, at once and whenever the process comes to
// rest, until ctx ends.
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

// watch notices when the process comes to rest: by what it allocates, which says
// so of all that it does.
type watch struct {
	allocated uint64 // when it was looked at last
	busy      bool   // then
}

// rests reports whether something is to be given back, when so much was
// allocated since the start and so much is free. It is not while nothing happens
// and nothing is free: that would cost more than all else that happens then.
func (w *watch) rests(allocated, free uint64) bool {
	before := *w
	w.busy, w.allocated = allocated-before.allocated > atRest, allocated
	return !w.busy && (before.busy || free > worthwhile)
}
