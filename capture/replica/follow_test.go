package replica

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cache/redis/redistest"
	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
)

func TestEntriesAreFollowedByEachReplica(t *testing.T) {
	server := redistest.Start(t)
	one, other := New(dial(t, server), 1000, 1<<20), New(dial(t, server), 1000, 1<<20)
	for i := range page + 2 {
		if _, err := one.Add(t.Context(), []ledger.Turn{turn(fmt.Sprint(i), "g")}, time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	since := func(after int64, n int) (numbers []int64, ids []string) {
		t.Helper()
		err := other.Since(t.Context(), after, n, func(e ledger.Entry) error {
			if e.Group != "g" {
				t.Errorf("an entry is of group %q, want g", e.Group)
			}
			numbers, ids = append(numbers, e.Seq), append(ids, e.Turn.ID)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return numbers, ids
	}
	all, _ := since(0, 1000)
	if len(all) != page+2 {
		t.Fatalf("followed %d entries, want %d", len(all), page+2)
	}
	if _, ids := since(all[0], 2); !slices.Equal(ids, []string{"1", "2"}) {
		t.Errorf("behind the first two of the next are %q, want 1 and 2", ids)
	}
	if _, ids := since(all[len(all)-1], 10); ids != nil {
		t.Errorf("behind the last there is %q, want nothing", ids)
	}
	if left, err := other.Left(t.Context(), all); err != nil || left != nil {
		t.Fatalf("%v have left, %v; want none", left, err)
	}
	if ok, err := one.TakeLease(t.Context()); !ok || err != nil {
		t.Fatalf("the lease was not taken: %v, %v", ok, err)
	}
	if err := one.InDoubt(func(ledger.Entry) {}); err != nil {
		t.Fatal(err)
	}
	list, err := one.Next(t.Context(), "g", 2)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := one.MarkDelivered(list[:1], true, time.Now()); err != nil {
		t.Fatal(err)
	}
	if _, err := one.MarkDead(&list[1], "refused"); err != nil {
		t.Fatal(err)
	}
	if left, err := other.Left(t.Context(), all); err != nil || !slices.Equal(left, all[:1]) {
		t.Errorf("%v have left, %v; want the delivered one, %v", left, err, all[:1])
	}
	if err := server.Client().FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	if _, err := one.Add(t.Context(), []ledger.Turn{turn("new", "g")}, time.Now()); err != nil {
		t.Fatal(err)
	}
	if _, ids := since(all[len(all)-1], 10); !slices.Equal(ids, []string{"new"}) {
		t.Errorf("after Redis was emptied, Since returned %q, want the new entry", ids)
	}
}
