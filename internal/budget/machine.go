package budget

import (
	"math"
	"runtime/debug"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

const (
	// part is the divisor of the RAM limit for all requests together.
	part = 4

	// most limits the default if only the machine, which also serves other processes,
	// limits the RAM.
	most = 1 << 30

	// unknown is the default if the RAM is unknown.
	unknown = 256 << 20
)

// Default returns the default budget in bytes: a quarter of the process's limit, set by
// GOMEMLIMIT or a cgroup, or else a quarter of the machine's RAM, but at most 1 GiB.
func Default() int {
	limit := debug.SetMemoryLimit(-1)
	if n, err := memlimit.FromCgroup(); err == nil {
		limit = min(limit, int64(min(n, math.MaxInt64)))
	}
	if limit < math.MaxInt64 {
		return int(limit / part)
	}
	if total, err := memlimit.FromSystem(); err == nil {
		return int(min(total/part, most))
	}
	return unknown
}

// LimitHeap limits the process to nine tenths of its cgroup's limit; the rest is for RAM
// outside of Go's heap. It does nothing if GOMEMLIMIT is set or there is no limit.
func LimitHeap() { _, _ = memlimit.Set() }
