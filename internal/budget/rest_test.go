package budget

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// TestRests checks that rests reports true once after a busy period, and in an idle process
// if much RAM is free.
func TestRests(t *testing.T) {
	w := watch{busy: true}
	for i, step := range []struct {
		allocated, free uint64 // allocated since the step before
		want            bool
	}{
		{10 << 20, 50 << 20, false}, // the start
		{10 << 10, 1 << 20, true},
		{10 << 10, 1 << 20, false}, // already released
		{50 << 20, 9 << 20, false},
		{50 << 20, 90 << 20, false}, // busy, regardless of the free RAM
		{0, 90 << 20, true},
		{0, 0, false},
		{atRest, worthwhile + 1, true},
		{atRest + 1, 0, false},
		{atRest, 0, true},
	} {
		if got := w.rests(w.allocated+step.allocated, step.free); got != step.want {
			t.Errorf("step %d: %t", i, got)
		}
	}
}

func TestRestEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*lookEvery+time.Second)
		defer cancel()
		released := 0
		if Rest(ctx, func() { released++ }); ctx.Err() == nil {
			t.Error("it has ended before it was told to")
		}
		if released == 0 {
			t.Error("caches kept their entries in an idle process")
		}
	})
}
