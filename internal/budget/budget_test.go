package budget

import (
	"runtime/debug"
	"sync"
	"testing"
)

// TestSmallRequestsHaveTheirPart: large ones leave a quarter to the others.
func TestSmallRequestsHaveTheirPart(t *testing.T) {
	b := New(4 << 20)
	large, chat := b.Share(), b.Share()
	if large.Grow(3<<20+1) || !large.Grow(3<<20) {
		t.Fatal("large:", b.Used())
	}
	if large.Grow(1) || !chat.Grow(small) {
		t.Error("small:", b.Used())
	}
}

func TestBudgetIsKeptByMany(t *testing.T) {
	b := New(1000)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			s := b.Share()
			for range 10000 {
				if s.Grow(300) && b.Used() > 1000 {
					t.Error("used", b.Used())
				}
				s.Release()
			}
		})
	}
	all.Wait()
	if b.Used() != 0 {
		t.Error("left:", b.Used())
	}
}

// TestDefault checks the order of the limits.
func TestDefault(t *testing.T) {
	if n := Default(); n < 1<<20 {
		t.Error("default:", n)
	}
	was := debug.SetMemoryLimit(64 << 20)
	defer debug.SetMemoryLimit(was)
	if n := Default(); n != 64<<20/part {
		t.Error("with a memory limit of 64 MiB:", n)
	}
}
