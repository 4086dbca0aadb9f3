package replica

import (
	"slices"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/cache/redis/redistest"
	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
)

// TestManyNumbersOverRedis checks that Retry and DropDead take thousands of numbers in one
// call.
func TestManyNumbersOverRedis(t *testing.T) {
	s := New(dial(t, redistest.Start(t)), 100, 1<<20)
	if ok, err := s.TakeLease(t.Context()); !ok || err != nil {
		t.Fatalf("the lease was not taken: %v, %v", ok, err)
	}
	var numbers []int64
	for _, id := range []string{"1", "2", "3"} {
		if _, err := add(t, s, []ledger.Turn{turn(id, "g")}); err != nil {
			t.Fatal(err)
		}
	}
	err := s.read(t.Context(), "-", func(e *streamEntry) error {
		one, err := e.withMark(entryState{})
		if err != nil {
			return err
		}
		numbers = append(numbers, e.Number)
		_, err = s.MarkDead(&one, "refused")
		return err
	})
	if err != nil || len(numbers) != 3 {
		t.Fatalf("got %v, %v, want no error, 3 of them", numbers, err)
	}
	var many []int64
	for n := range int64(9000) {
		many = append(many, 1_000_000+n)
	}
	if _, back, err := s.Retry(slices.Concat(many, numbers[:1])); err != nil || back.Turns != 1 {
		t.Errorf("retry: %+v, %v", back, err)
	}
	if gone, err := s.DropDead(slices.Concat(numbers[1:2], many)); err != nil || gone.Dead.Turns != 1 {
		t.Errorf("drop: %+v, %v", gone, err)
	}
	if gone, err := s.DropDead(nil); err != nil || gone.Dead.Turns != 1 {
		t.Errorf("drop all: %+v, %v", gone, err)
	}
}
