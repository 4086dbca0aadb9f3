package response

import (
	"log/slog"
	"slices"
	"testing"
)

// TestAConversationThatWaitsHoldsUpNoOther checks that a blocked report of one conversation
// does not delay those of a hundred others, and that its own reports then run in order.
func TestAConversationThatWaitsHoldsUpNoOther(t *testing.T) {
	w := Start(slog.New(slog.DiscardHandler), nil)
	held, others := make(chan struct{}), make(chan struct{})
	var first []int
	for i := range 3 {
		w.reports.add(0, func() { <-held; first = append(first, i) })
	}
	for n := range uint64(100) {
		w.reports.add(n+1, func() { others <- struct{}{} })
	}
	for range 100 {
		<-others
	}
	close(held)
	w.Close()
	if want := []int{0, 1, 2}; !slices.Equal(first, want) {
		t.Errorf("the answers of a conversation are reported in the order %v, want %v", first, want)
	}
	if len(w.reports.waiting) != 0 {
		t.Errorf("%d conversations are still known", len(w.reports.waiting))
	}
}
