package cache

import (
	"context"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cache/redis/redistest"
)

// TestTombstones outlast the process, and stand until all that was to be
// forgotten of their group is proven to be gone.
func TestTombstones(t *testing.T) {
	path := t.TempDir() + "/state.db"
	server := redistest.Start(t)
	for name, open := range map[string]func() *State{
		"file":     func() *State { return openState(t, path) },
		"replicas": func() *State { return Share(dial(t, server), time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			group, session := Tombstone{"g", "g"}, Tombstone{"g", "talk:1:"}
			steps := []struct {
				do   func(*Tombstones) error
				want bool
			}{
				{func(*Tombstones) error { return nil }, false},
				{func(s *Tombstones) error { return s.Set(ctx, session) }, true},
				{func(s *Tombstones) error { return s.Set(ctx, group) }, true},
				{func(s *Tombstones) error { return s.Clear(ctx, session) }, true},
				{func(s *Tombstones) error { return s.Set(ctx, session) }, true},
				{func(s *Tombstones) error { return s.Clear(ctx, group) }, false}, // of which the session was a part
			}
			for i, step := range steps {
				s := open()
				if err := step.do(s.Tombstones); err != nil {
					t.Fatal(err)
				}
				here := s.Tombstones.Has("g")
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				s = open()
				if after := s.Tombstones.Has("g"); here != step.want || after != step.want || s.Tombstones.Has("h") {
					t.Errorf("step %d: %v, and %v to the next process", i, here, after)
				}
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
	s := Share(dial(t, server), time.Hour)
	server.Kill()
	if !s.Tombstones.Has("g") {
		t.Error("where it cannot be known it may be shown")
	}
}

// lagging is a store whose first read of tombstones answers late.
type lagging struct {
	store
	read   atomic.Bool
	began  chan struct{}
	answer chan struct{}
}

func (l *lagging) readTombstones(ctx context.Context) (list []Tombstone, err error) {
	list, err = l.store.readTombstones(ctx)
	if l.read.CompareAndSwap(false, true) {
		close(l.began)
		<-l.answer
	}
	return list, err
}

// TestTombstonesReadLate: a read that began before a tombstone was set, and ends
// after it, does not take it away.
func TestTombstonesReadLate(t *testing.T) {
	f, err := openFile(filepath.Join(t.TempDir(), "state.db"), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.close() })
	slow := &lagging{store: f, began: make(chan struct{}), answer: make(chan struct{})}
	stones := &Tombstones{store: slow}
	ended := make(chan error)
	go func() { // ends with the test
		_, err := stones.Groups(t.Context())
		ended <- err
	}()
	<-slow.began
	if err := stones.Set(t.Context(), Tombstone{"g", "g"}); err != nil {
		t.Fatal(err)
	}
	close(slow.answer)
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if known := stones.Known(); !stones.Has("g") || !slices.Equal(known, []string{"g"}) {
		t.Errorf("known are %q", known)
	}
}
