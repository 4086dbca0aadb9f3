package capture

import (
	"context"
	"testing"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
)

// held is a spool that keeps who adds turns to it, when they are stored.
type held struct {
	ledger.Recorder
	stored, release chan struct{}
}

func (h *held) Add(ctx context.Context, turns []ledger.Turn, now time.Time) ([]ledger.Added, error) {
	all, err := h.Recorder.Add(ctx, turns, now)
	close(h.stored)
	<-h.release
	return all, err
}

// TestStatusNeverCountsBelowZero: a turn may be delivered before the writer
// that stored it has counted it.
func TestStatusNeverCountsBelowZero(t *testing.T) {
	inBubble(t, &fakeMemory{}, func(t *testing.T, p *Pipeline, _ *logged) {
		h := &held{box(p).spool.Recorder, make(chan struct{}), make(chan struct{})}
		box(p).spool.Recorder = h
		added := make(chan error)
		go func() { added <- p.Add(context.Background(), turn("early", "a")) }()
		<-h.stored
		box(p).loop.Wake("a", true) // as another turn of the group does
		until(t, "the turn", func() bool { return p.Status().Delivered == 1 })
		if s := p.Status(); s.Pending != 0 || s.Bytes != 0 {
			t.Errorf("got %+v, want Pending 0, Bytes 0", s)
		}
		close(h.release)
		if err := <-added; err != nil {
			t.Fatal(err)
		}
		if s := p.Status(); s.Pending != 0 || s.Bytes != 0 || s.Delivered != 1 {
			t.Errorf("got %+v, want Pending 0, Bytes 0, Delivered 1", s)
		}
	})
}
