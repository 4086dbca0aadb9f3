package cache

import (
	"context"
	"crypto/sha256"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/inject"
)

func hashOf(n int) [16]byte { s := sha256.Sum256(fmt.Append(nil, n)); return [16]byte(s[:]) }

// readDecided waits until the filter holds all keys of the file.
func readDecided(t *testing.T, s *State) {
	t.Helper()
	s.file.reading.Wait()
	if s.file.holds.May(hashOf(-1)) {
		t.Fatal("May is true for a key without a decision, after the file was read")
	}
}

// TestDecidedKeysAreFound checks that the filter finds the keys of earlier processes and
// those added while the file is read, and passes almost no other key.
func TestDecidedKeysAreFound(t *testing.T) {
	const keys = 2000
	path := filepath.Join(t.TempDir(), "state.db")
	var all [][16]byte
	for process := range 3 {
		s, err := OpenState(path, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		for i := range keys / 10 {
			k := hashOf(process*keys + i)
			if _, err := s.Decisions.Keep(t.Context(), k, inject.Decision{Block: fmt.Sprint(process, i)}); err != nil {
				t.Fatal(err)
			}
			all = append(all, k)
		}
		readDecided(t, s)
		found, err := s.Decisions.Lookup(t.Context(), 1, all) // Keep has cached the decisions under generation 0
		if err != nil {
			t.Fatal(err)
		}
		for i, d := range found {
			if want := fmt.Sprint(i/(keys/10), i%(keys/10)); d == nil || d.Block != want {
				t.Fatalf("process %d, key %d: %+v, want block %q", process, i, d, want)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	s, err := OpenState(path, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	readDecided(t, s)
	in := 0
	for i := range keys {
		if s.file.holds.May(hashOf(-1 - i)) {
			in++
		}
	}
	if in > 1 {
		t.Errorf("May is true for %d of %d keys without a decision, want 1 at most", in, keys)
	}
	// The file is read only if a key may have a decision.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if found, err := s.Decisions.Lookup(ctx, 0, [][16]byte{hashOf(-1)}); err != nil || found[0] != nil {
		t.Errorf("Lookup of a key without a decision: %v, %v; want none, without a query", found, err)
	}
	if _, err := s.Decisions.Lookup(ctx, 0, all); err == nil {
		t.Error("Lookup of keys with a decision, with a context that has ended: no error, so the file was not read")
	}
}

// TestKeysAreLookedUpUntilAllAreKnown checks that every key may have a decision until the
// file was read without an error.
func TestKeysAreLookedUpUntilAllAreKnown(t *testing.T) {
	var d keyFilter
	if !d.May(hashOf(1)) {
		t.Error("May is false before anything was read")
	}
	s, err := OpenState(filepath.Join(t.TempDir(), "state.db"), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if d.Read(ctx, s.file.db); !d.May(hashOf(1)) {
		t.Error("May is false after a Read that failed")
	}
	d.Add(hashOf(1))
	if d.Read(t.Context(), s.file.db); !d.May(hashOf(1)) || d.May(hashOf(2)) {
		t.Errorf("after Read: May(added key) is %v, May(other key) is %v; want true, false", d.May(hashOf(1)), d.May(hashOf(2)))
	}
}
