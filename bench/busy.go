package main

import (
	"os"
	"strconv"
	"strings"
	"time"
)

// busy measures the load that other processes put on the machine during a run: figures of
// a busy machine are worse, and vary more.
type busy struct {
	p     *processes
	began time.Time
	all   time.Duration // processor time of all processes, at the start
	ours  time.Duration
}

func (p *processes) watchOthers() *busy {
	return &busy{p: p, began: time.Now(), all: usedByAll(), ours: p.used()}
}

// others returns the average number of processors that other processes used.
func (b *busy) others() float64 {
	all, ours := usedByAll()-b.all, b.p.used()-b.ours
	return max(0, (all-ours).Seconds()/time.Since(b.began).Seconds())
}

// used returns the processor time of the benchmark and its processes.
func (p *processes) used() time.Duration {
	all := []int{os.Getpid()}
	for _, c := range p.cmds {
		all = append(all, withChildren(c.Process.Pid)...)
	}
	return time.Duration(cpuOf(all))
}

// usedByAll returns the processor time that the machine has used, from the kernel's count
// in hundredths of a second.
func usedByAll() (sum time.Duration) {
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0
	}
	line, _, _ := strings.Cut(string(b), "\n")
	const idle, wait, guest = 4, 5, 9 // guest's time is counted as user's, too
	for i, f := range strings.Fields(line) {
		if n, err := strconv.ParseInt(f, 10, 64); err == nil && i != idle && i != wait && i < guest {
			sum += time.Duration(n) * 10 * time.Millisecond
		}
	}
	return sum
}
