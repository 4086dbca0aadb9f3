package deadline

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestEndsLikeAnother: at every moment, and whoever waits or not, it says what a
// context of the standard library says.
func TestEndsLikeAnother(t *testing.T) {
	for _, waits := range []bool{false, true} {
		for _, ends := range []string{"by its time", "with its parent", "stopped", "parent's time"} {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				parent, cancel := context.WithCancel(context.Background())
				if ends == "parent's time" {
					cancel()
					parent, cancel = context.WithDeadline(context.Background(), start.Add(time.Second))
				}
				defer cancel()
				at := start.Add(2 * time.Second)
				got := New(parent, at)
				defer got.Stop()
				want, stop := context.WithDeadline(parent, at)
				defer stop()
				same := func(when string) {
					t.Helper()
					if waits {
						select {
						case <-got.Done():
						default:
							if want.Err() != nil {
								t.Errorf("%s, %s: it has not ended", ends, when)
							}
						}
					}
					if !errors.Is(got.Err(), want.Err()) {
						t.Errorf("%s, %s: %v, want %v (waited for: %v)", ends, when, got.Err(), want.Err(), waits)
					}
					a, _ := got.Deadline()
					if b, _ := want.Deadline(); !a.Equal(b) {
						t.Errorf("%s: deadline %v, want %v", ends, a, b)
					}
				}
				same("at first")
				switch ends {
				case "with its parent":
					cancel()
				case "stopped":
					got.Stop()
					stop()
				default:
					<-want.Done()
				}
				synctest.Wait()
				same("at its end")
				if <-got.Done(); !errors.Is(got.Err(), want.Err()) {
					t.Errorf("%s: who waits afterwards gets %v, want %v", ends, got.Err(), want.Err())
				}
			})
		}
	}
}

// TestNobodyWaits: then it takes one allocation, and no timer.
func TestNobodyWaits(t *testing.T) {
	at := time.Now().Add(time.Hour)
	if n := testing.AllocsPerRun(100, func() {
		c := New(context.Background(), at)
		if c.Err() != nil {
			t.Error(c.Err())
		}
		c.Stop()
	}); n > 1 {
		t.Errorf("%v allocations", n)
	}
}
