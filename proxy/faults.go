package proxy

import (
	"log/slog"
	"sync"
	"time"
)

// faultInterval is how often a kind of fault is logged at most.
const faultInterval = time.Minute

// faults logs a kind of fault once and then counts it, so that an outage does
// not fill the log.
type faults struct {
	mu    sync.Mutex // guards kinds
	kinds map[string]*fault
}

type fault struct {
	last  time.Time
	quiet int // not logged since last
}

// report logs err, unless its kind was logged within the last minute. kind is
// one of a few constants.
func (f *faults) report(log *slog.Logger, kind string, err error) {
	f.mu.Lock()
	if f.kinds == nil {
		f.kinds = make(map[string]*fault)
	}
	k := f.kinds[kind]
	if k == nil {
		k = &fault{}
		f.kinds[kind] = k
	}
	now := time.Now()
	if now.Sub(k.last) < faultInterval {
		k.quiet++
		f.mu.Unlock()
		return
	}
	quiet := k.quiet
	k.last, k.quiet = now, 0
	f.mu.Unlock()
	log.Warn("fault", "kind", kind, "error", err, "not_logged_before", quiet)
}
