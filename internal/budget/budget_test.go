package budget

import (
	"math"
	"runtime/debug"
	"sync"
	"testing"
)

func TestShare(t *testing.T) {
	b := New(1 << 20)
	s, other := b.Share(), b.Share()
	if !s.Grow(100) || b.Used() != 100 || s.Held() != 100 {
		t.Fatalf("after Grow(100) %d bytes are used and the share holds %d, want 100 and 100", b.Used(), s.Held())
	}
	if !s.Resize(100, 200) || !s.Resize(200, 50) || b.Used() != 50 {
		t.Error("resized:", b.Used())
	}
	if other.Grow(1<<20) || other.Held() != 0 {
		t.Error("more than there is was taken")
	}
	s.Shrink(20)
	s.Shrink(30)
	if b.Used() != 20 {
		t.Error("shrunk:", b.Used())
	}
	s.Release()
	s.Release()
	if b.Used() != 0 {
		t.Error("released:", b.Used())
	}
	var free Share
	if !free.Grow(math.MaxInt32) {
		t.Error("the zero Share has a bound")
	}
}

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
