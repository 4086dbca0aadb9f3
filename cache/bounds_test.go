package cache

import (
	"context"
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cache/redis"
	"github.com/graphiti-proxy/graphiti-proxy/cache/redis/redistest"
)

// TestSharedNamesAreBounded checks that the indexes of a group in constant use drop the
// names of expired decisions and snapshots.
func TestSharedNamesAreBounded(t *testing.T) {
	server := redistest.Start(t)
	db := dial(t, server)
	s := Share(db, time.Hour)
	direct := server.Client()
	defer direct.Close()
	ctx := context.Background()
	const n = 300
	keep := func(from int) {
		t.Helper()
		for i := from; i < from+n; i++ {
			var k [16]byte
			binary.BigEndian.PutUint32(k[:], uint32(i))
			if _, err := s.Decisions.Keep(ctx, k, s.made("text", 1), "g"); err != nil {
				t.Fatal(err)
			}
			save(t, s, fmt.Sprint(i), "text", 1, "g")
		}
	}
	keep(0)
	indexes := []string{scopeIndex(decisionKind, factsOf("g")), scopeIndex(snapshotKind, "g")}
	for _, index := range indexes { // lets the entries expire
		names, err := direct.ZRange(ctx, index, 0, -1).Result()
		if err != nil || len(names) != n || direct.Del(ctx, names...).Err() != nil {
			t.Fatalf("%s has %d names, %v; want %d, and all deleted", index, len(names), err, n)
		}
		for _, name := range names {
			if err := direct.ZAdd(ctx, index, redis.Z{Score: 1, Member: name}).Err(); err != nil {
				t.Fatal(err)
			}
		}
	}
	keep(n)
	for _, index := range indexes {
		if got := direct.ZCard(ctx, index).Val(); got != n {
			t.Errorf("%s has %d names, want %d", index, got, n)
		}
	}
}
