package cache

import (
	"context"
	"encoding/binary"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cache/redis"
	"github.com/graphiti-proxy/graphiti-proxy/cache/redis/redistest"
	"github.com/graphiti-proxy/graphiti-proxy/inject"
)

// BenchmarkDecision measures the store calls of a new turn, a lookup that finds no decision
// and a Keep, in a file and over a local Redis.
func BenchmarkDecision(b *testing.B) {
	block, pieces := strings.Repeat("x", 1000), inject.Pieces(strings.Repeat("x", 2000))
	run := func(b *testing.B, s *State) {
		ctx := context.Background()
		n := uint64(time.Now().UnixNano())
		b.ResetTimer()
		for b.Loop() {
			n++
			var k [16]byte
			binary.LittleEndian.PutUint64(k[:], n)
			if list, err := s.Decisions.Lookup(ctx, 1, [][16]byte{k}); err != nil || list[0] != nil {
				b.Fatalf("Lookup: %v, %v", list, err)
			}
			if _, err := s.Decisions.Keep(ctx, k, inject.Decision{Block: block, Facts: 3, Ingest: true, Generation: 1, Pieces: pieces}, "group"); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.Run("file", func(b *testing.B) {
		s := openState(b, b.TempDir()+"/state.db")
		defer s.Close()
		run(b, s)
	})
	b.Run("redis", func(b *testing.B) {
		db, err := redis.Open(redistest.Start(b).URL(), slog.New(slog.DiscardHandler))
		if err != nil {
			b.Fatal(err)
		}
		defer db.Close()
		run(b, Share(db, time.Hour))
	})
}
