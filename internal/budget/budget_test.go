package budget

import (
	"math"
	"os"
	"path/filepath"
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
	if !free.Grow(math.MaxInt32) || !free.Fits(1) {
		t.Error("the zero Share has a bound")
	}
}

// TestSmallRequestsHaveTheirPart: large ones leave a quarter to the others.
func TestSmallRequestsHaveTheirPart(t *testing.T) {
	b := New(4 << 20)
	large, chat := b.Share(), b.Share()
	if large.Grow(3<<20+1) || large.Fits(3<<20+1) || !large.Grow(3<<20) {
		t.Fatal("large:", b.Used())
	}
	if large.Grow(1) || !chat.Fits(small) || !chat.Grow(small) {
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

func TestLimitOfACgroup(t *testing.T) {
	for name, tc := range map[string]struct {
		files map[string]string
		want  int64
	}{
		"version 2":             {map[string]string{"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/memory.max": "536870912\n"}, 512 << 20},
		"its parent's":          {map[string]string{"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/memory.max": "max\n", "sys/fs/cgroup/a/memory.max": "1024\n"}, 1024},
		"in a container":        {map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "2048\n"}, 2048},
		"version 1":             {map[string]string{"proc/self/cgroup": "4:memory:/x\n0::/\n", "sys/fs/cgroup/memory/x/memory.limit_in_bytes": "4096\n"}, 4096},
		"version 1, path cut":   {map[string]string{"proc/self/cgroup": "4:memory:/docker/x\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "4096\n"}, 4096},
		"version 1 without one": {map[string]string{"proc/self/cgroup": "4:memory:/x\n", "sys/fs/cgroup/memory/x/memory.limit_in_bytes": "9223372036854771712\n"}, math.MaxInt64},
		"none":                  {nil, math.MaxInt64},
	} {
		root := t.TempDir()
		for file, text := range tc.files {
			file = filepath.Join(root, file)
			if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got := cgroupLimit(root); got != tc.want {
			t.Errorf("%s: %d, want %d", name, got, tc.want)
		}
	}
	if n := Default(); n < 1<<20 {
		t.Error("default:", n)
	}
}
