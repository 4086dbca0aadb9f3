package cache

import (
	"encoding/binary"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/internal/helptest"
	"github.com/graphiti-proxy/graphiti-proxy/internal/memo"
)

func numbered(i int) (key [16]byte) {
	binary.BigEndian.PutUint32(key[:], uint32(i)) //nolint:gosec // it fits
	return key
}

// TestDecisionsInRAMAreBounded: evicted ones are read from the store.
func TestDecisionsInRAMAreBounded(t *testing.T) {
	s := openState(t, filepath.Join(t.TempDir(), "state.db"))
	defer s.Close()
	const most = 64 << 10
	s.Decisions.recent = memo.NewLRU[[16]byte, recentDecision](most)
	text := strings.Repeat("x", 1<<10)
	const n = 100
	for i := range n {
		must(t, helptest.ErrorOf(s.Decisions.Keep(t.Context(), numbered(i), s.made(text, 1))))
	}
	if held, _ := s.Decisions.recent.Held(); held == 0 || held*len(text) > most {
		t.Errorf("%d decisions of %d bytes in RAM, want 1 or more within %d bytes", held, len(text), most)
	}
	for _, i := range []int{0, n - 1} {
		list, err := s.Decisions.Lookup(t.Context(), s.Generations.Now(), [][16]byte{numbered(i)})
		if err != nil || list[0] == nil || list[0].Block != text {
			t.Errorf("decision %d: %v, error %v; want its block", i, list[0], err)
		}
	}
}

// TestSessionsInRAMAreBounded: evicted ones are read from the store, and conversations
// without an answer are found even then.
func TestSessionsInRAMAreBounded(t *testing.T) {
	s := openState(t, filepath.Join(t.TempDir(), "state.db"))
	defer s.Close()
	ctx, all := t.Context(), s.Sessions
	const most = 4 << 10
	all.recent = memo.NewLRU[[16]byte, string](most)
	const n = 100
	all.SetPending(ctx, numbered(n), "waits")
	for i := range n {
		must(t, all.Put(ctx, fmt.Sprint("session", i), numbered(i)))
	}
	if held, _ := all.recent.Held(); held == 0 || held*linkOverhead > most {
		t.Errorf("%d sessions in RAM, want 1 or more within %d bytes", held, most)
	}
	for _, i := range []int{0, n - 1} {
		if got, ok, err := all.Find(ctx, [][16]byte{numbered(i)}); got != fmt.Sprint("session", i) || !ok || err != nil {
			t.Errorf("session %d: got %q, %v, error %v", i, got, ok, err)
		}
	}
	if got, ok := all.Pending(ctx, numbered(n)); got != "waits" || !ok {
		t.Errorf("conversation without an answer: got %q, %v; want its session", got, ok)
	}
}

// TestCachesFit: the caches of a process are bounded together.
func TestCachesFit(t *testing.T) {
	s := openState(t, filepath.Join(t.TempDir(), "state.db"))
	defer s.Close()
	if got := decisionsInRAM + sessionsInRAM + 250*tenantsInRAM; got > 32<<20 {
		t.Errorf("the caches of state.db may hold %d bytes, want at most 32 MiB", got)
	}
}
