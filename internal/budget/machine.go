package budget

import (
	"bytes"
	"math"
	"os"
	"path"
	"runtime/debug"
	"strconv"
	"strings"
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
	limit := min(debug.SetMemoryLimit(-1), cgroupLimit("/"))
	if limit < math.MaxInt64 {
		return int(limit / part)
	}
	if total := physical("/proc/meminfo"); total > 0 {
		return int(min(total/part, most))
	}
	return unknown
}

// LimitHeap limits the process to nine tenths of its cgroup's limit; the rest is for RAM
// outside of Go's heap. It does nothing if GOMEMLIMIT is set or there is no limit.
func LimitHeap() {
	if limit := cgroupLimit("/"); os.Getenv("GOMEMLIMIT") == "" && limit < math.MaxInt64 {
		debug.SetMemoryLimit(limit - limit/10)
	}
}

// cgroupLimit returns the lowest RAM limit of the process's cgroup, version 1 or 2, and
// its ancestors, or math.MaxInt64. root is the machine's root directory.
func cgroupLimit(root string) int64 {
	limit := int64(math.MaxInt64)
	own, err := os.ReadFile(path.Join(root, "proc/self/cgroup"))
	if err != nil {
		return limit
	}
	for line := range strings.Lines(string(own)) {
		field := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(field) != 3 {
			continue
		}
		mount, file := "", ""
		switch {
		case field[0] == "0" && field[1] == "":
			mount, file = "sys/fs/cgroup", "memory.max"
		case strings.Contains(","+field[1]+",", ",memory,"):
			mount, file = "sys/fs/cgroup/memory", "memory.limit_in_bytes"
		default:
			continue
		}
		// In a container the path may be the host's: then only the mount itself
		// exists.
		for at := path.Join("/", field[2]); ; at = path.Dir(at) {
			limit = min(limit, readLimit(path.Join(root, mount, at, file)))
			if at == "/" {
				break
			}
		}
	}
	return limit
}

// readLimit returns a cgroup's limit. Without a limit, version 1 contains a very large
// number, and version 2 "max".
func readLimit(file string) int64 {
	b, err := os.ReadFile(file) // #nosec G304 -- the system's own files
	if err != nil {
		return math.MaxInt64
	}
	n, err := strconv.ParseInt(string(bytes.TrimSpace(b)), 10, 64)
	if err != nil || n <= 0 || n >= 1<<60 {
		return math.MaxInt64
	}
	return n
}

// physical returns the RAM of the machine, or 0 if unknown.
func physical(file string) int64 {
	b, err := os.ReadFile(file) // #nosec G304 -- the system's own file
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b)) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[0] == "MemTotal:" {
			kib, _ := strconv.ParseInt(fields[1], 10, 64)
			return kib << 10
		}
	}
	return 0
}
