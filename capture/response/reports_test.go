package response

import (
	"context"
	"log/slog"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect/chat"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect/gemini"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect/messages"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect/responses"
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

// TestEarlier checks that Earlier waits for the reports of a conversation's answers and of ended
// answers in other conversations, in each dialect.
func TestEarlier(t *testing.T) {
	caller := dialect.Fingerprint{1}
	for name, tc := range map[string]struct {
		reader func() dialect.Reader
		answer string
	}{
		"chat":      {func() dialect.Reader { return chat.Dialect{}.NewReader("") }, `{"choices":[{"message":{"role":"assistant","content":"Noted."},"finish_reason":"stop"}]}`},
		"messages":  {func() dialect.Reader { return messages.Dialect{}.NewReader("") }, `{"type":"message","role":"assistant","content":[{"type":"text","text":"Noted."}],"stop_reason":"end_turn"}`},
		"responses": {func() dialect.Reader { return responses.Dialect{}.NewReader("") }, `{"status":"completed","output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Noted."}]}]}`},
		"gemini":    {func() dialect.Reader { return gemini.Dialect{}.NewReader("") }, `{"candidates":[{"content":{"role":"model","parts":[{"text":"Noted."}]},"finishReason":"STOP"}]}`},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := New(slog.New(slog.DiscardHandler), nil)
			defer w.Close()
			var stored atomic.Int32
			read := func(order uint64) *Tee {
				tee := w.Read(tc.reader(), Meta{Of: caller, Order: order}, func(a dialect.Answer, clean bool) {
					time.Sleep(time.Second) // the disk
					if clean && a.Text == "Noted." {
						stored.Add(1)
					}
				})
				tee.Write([]byte(tc.answer))
				return tee
			}
			before, ended, streams := read(1), read(2), read(3)
			ended.Close(true)
			wait := w.Earlier(caller, 1)
			own := read(1)
			time.AfterFunc(5*time.Second, func() { before.Close(true) })
			began := time.Now()
			if wait(t.Context()); stored.Load() != 2 || time.Since(began) != 6*time.Second {
				t.Errorf("%s: %d turns are stored after %s, want 2 after 6s", name, stored.Load(), time.Since(began))
			}
			own.Close(true)
			streams.Close(true)
		})
	}
}
