package response

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect/chat"
)

// TestAwait checks that Await returns when the answer is reported, when all answers of the
// caller are reported or dropped, and at the deadline, but not for answers of other callers.
func TestAwait(t *testing.T) {
	one, other := dialect.Fingerprint{1}, dialect.Fingerprint{2}
	never := func() bool { return false }
	for _, tc := range []struct {
		name     string
		ends     bool // the answer of one ends
		of       dialect.Fingerprint
		known    func() bool
		deadline bool // Await waits until the deadline
	}{
		{"known", false, one, func() bool { return true }, false},
		{"unknown, another caller", false, other, never, false},
		{"unknown, all reported", true, one, never, false},
		{"unknown, one unreported", false, one, never, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := New(slog.New(slog.DiscardHandler), nil)
			defer w.Close()
			tee := w.Read(chat.Dialect{}.NewReader(""), Meta{Of: one}, func(dialect.Answer, bool) { time.Sleep(time.Millisecond) })
			dropped := w.Read(chat.Dialect{}.NewReader(""), Meta{Of: one}, func(dialect.Answer, bool) {})
			dropped.lose()
			tee.Write([]byte(`{}`))
			if tc.ends {
				tee.Close(true)
			} else {
				defer tee.Close(false)
			}
			began := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if w.Await(ctx, tc.of, tc.known); (time.Since(began) == time.Second) != tc.deadline {
				t.Errorf("%s: Await returned after %s", tc.name, time.Since(began))
			}
		})
	}
}

// TestReports_Full checks that an answer beyond maxReports, or after Close, is dropped without a wait.
func TestReports_Full(t *testing.T) {
	w := New(slog.New(slog.DiscardHandler), nil)
	held := make(chan struct{})
	end := func() {
		w.Read(chat.Dialect{}.NewReader(""), Meta{}, func(dialect.Answer, bool) { <-held }).Close(true)
	}
	for range maxReports + 1 {
		end()
	}
	if w.Dropped() != 1 {
		t.Errorf("%d answers were dropped, want 1", w.Dropped())
	}
	close(held)
	w.Close()
	if end(); w.Dropped() != 2 {
		t.Errorf("after Close, %d answers were dropped, want 2", w.Dropped())
	}
}

// TestAConversationThatWaitsHoldsUpNoOther checks that a blocked report of one conversation
// does not delay those of a hundred others, and that its own reports then run in order.
func TestAConversationThatWaitsHoldsUpNoOther(t *testing.T) {
	w := New(slog.New(slog.DiscardHandler), nil)
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
	if len(w.reports.last) != 0 {
		t.Errorf("%d conversations are still known", len(w.reports.last))
	}
}
