package budget

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// TestRests: when nothing happens any more, and while it stays so.
func TestRests(t *testing.T) {
	w := watch{}
	for i, step := range []struct {
		allocated uint64 // since the step before
		want      bool
	}{
		{10 << 20, false}, // the start
		{50 << 20, false},
		{10 << 10, true},
		{10 << 10, false}, // a moment ago it was
		{10 << 10, true},
		{50 << 20, false},
		{atRest, true},
		{atRest + 1, false},
		{0, true},
	} {
		if got := w.rests(w.allocated + step.allocated); got != step.want {
			t.Errorf("step %d: %t", i, got)
		}
	}
}

func TestRestEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*lookEvery+time.Second)
		defer cancel()
		if Rest(ctx); ctx.Err() == nil {
			t.Error("it has ended before it was told to")
		}
	})
}
