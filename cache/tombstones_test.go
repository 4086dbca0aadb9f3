package cache

import (
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
