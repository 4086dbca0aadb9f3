package embedded

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/internal/helptest"
)

// both returns the two messages of a turn.
func both(t *ledger.Turn, _ graphiti.Scope) []graphiti.Row {
	return []graphiti.Row{
		{Name: graphiti.EpisodeName(t.ID, graphiti.RoleUser), Role: graphiti.RoleUser, Text: t.User, Said: t.Said},
		{Name: graphiti.EpisodeName(t.ID, graphiti.RoleAssistant), Role: graphiti.RoleAssistant, Text: t.Assistant, Said: t.Said},
	}
}

func turnsOf(n int) (turns []ledger.Turn) {
	for i := range n {
		turns = append(turns, ledger.Turn{
			ID: fmt.Sprint(i), Session: "session:s", Owner: "user:o", User: fmt.Sprint("question ", i), Assistant: fmt.Sprint("answer ", i),
			Said: time.Now(), Targets: []graphiti.Target{{Scope: graphiti.ScopeUser, Group: "g"}},
		})
	}
	return turns
}

// TestATurnWritesFewPages checks that a turn writes few pages, because most of its cost is
// in proportion to them.
func TestATurnWritesFewPages(t *testing.T) {
	path := filepath.Join(t.TempDir(), "memory.db")
	e, err := Open(path)
	must(t, err)
	defer e.Close()
	const n, most = 100, 6
	turns := turnsOf(n)
	for i := range turns {
		id := sha256.Sum256([]byte(turns[i].ID)) // like real ids, in no order
		turns[i].ID = hex.EncodeToString(id[:16])
		must(t, helptest.ErrorOf(e.Ledger(both).Add(t.Context(), turns[i:i+1], time.Now())))
	}
	info, err := os.Stat(path + "-wal")
	must(t, err)
	if pages := float64(info.Size()) / (4096 + 24) / n; pages > most {
		t.Errorf("a turn writes %.1f pages, want %d at most", pages, most)
	}
}

// TestMemoryCutOffInMidWrite checks that the memory opens wherever the last turn's record
// is cut, and has every acknowledged turn before it, and the last one whole or not at all.
// A repeated delivery of the last turn must store it once.
func TestMemoryCutOffInMidWrite(t *testing.T) {
	const kept = 3
	path := filepath.Join(t.TempDir(), "memory.db")
	e, err := Open(path)
	must(t, err)
	t.Cleanup(func() { e.Close() }) // only after the files are copied, as after kill -9
	turns := turnsOf(kept + 1)
	logged := func() int64 {
		info, err := os.Stat(path + "-wal")
		must(t, err)
		return info.Size()
	}
	for i := range kept {
		must(t, helptest.ErrorOf(e.Ledger(both).Add(t.Context(), turns[i:i+1], time.Now())))
	}
	from := logged()
	must(t, helptest.ErrorOf(e.Ledger(both).Add(t.Context(), turns[kept:], time.Now())))
	// Cut at the edges of each frame of the log, a header and a page, and in both.
	places := []int64{logged()}
	for frame := from; frame < logged(); frame += 24 + 4096 {
		for _, n := range []int64{0, 1, 23, 24, 25, 2000, 4119} {
			places = append(places, frame+n)
		}
	}
	var whole atomic.Int64
	t.Run("cut", func(t *testing.T) {
		const lanes = 8 // most of the time is spent waiting
		for lane := range lanes {
			t.Run(fmt.Sprint(lane), func(t *testing.T) {
				t.Parallel()
				for at := lane; at < len(places); at += lanes {
					if openCut(t, path, places[at], turns) == 0 {
						whole.Add(1)
					}
				}
			})
		}
	})
	if whole.Load() == 0 {
		t.Error("not even the whole record was read")
	}
	t.Logf("cut at %d places", len(places))
}

// openCut opens a copy of a memory with its log cut to length, adds the turns, and returns
// the number of new ones: 1 if the last turn was lost, else 0.
func openCut(t *testing.T, path string, length int64, turns []ledger.Turn) (missed int) {
	t.Helper()
	cut := filepath.Join(t.TempDir(), "memory.db")
	for _, end := range []string{"", "-wal"} {
		b, err := os.ReadFile(path + end)
		if err == nil && end != "" {
			b = b[:length]
		}
		if err == nil {
			err = os.WriteFile(cut+end, b, 0o600)
		}
		must(t, err)
	}
	e, err := Open(cut)
	if err != nil {
		t.Fatalf("cut to %d bytes: %v", length, err)
	}
	defer e.Close()
	held := func() (names []string) {
		for r, err := range e.Rows(t.Context(), "g", graphiti.Filter{Text: true}) {
			if err != nil {
				t.Fatalf("cut to %d bytes: %v", length, err)
			}
			names = append(names, r.Name)
		}
		return names
	}
	var all []string
	for i := range turns {
		for _, m := range both(&turns[i], "") {
			all = append(all, m.Name)
		}
	}
	before := held()
	added, err := e.Ledger(both).Add(t.Context(), turns, time.Now())
	if err != nil {
		t.Fatalf("cut to %d bytes: %v", length, err)
	}
	for i := range added {
		missed += len(added[i].Groups)
	}
	if want := all[:len(all)-2*missed]; missed > 1 || !slices.Equal(before, want) {
		t.Errorf("cut to %d bytes: %d turns are new, and it held %q", length, missed, before)
	}
	if after := held(); !slices.Equal(after, all) {
		t.Errorf("cut to %d bytes: in the end it holds %q", length, after)
	}
	return missed
}
