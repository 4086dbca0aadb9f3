package response

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/graphiti-proxy/graphiti-proxy/internal/budget"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect/chat"
)

// TestDecodingIsBounded checks that size, compression ratio, memory and time limit the
// decoding of a body, and that a failed decoding holds no memory.
func TestDecodingIsBounded(t *testing.T) {
	words := func(size int) string { // about 10:1
		var b strings.Builder
		for b.Len() < size {
			b.WriteString(strings.Repeat("said ", 10) + fmt.Sprint(rand.Uint32()))
		}
		return b.String()
	}
	for _, tc := range []struct {
		name, encoding, text string
		max, budget          int
		late                 bool
		want                 error
	}{
		{"a request", "zstd", words(3 << 20), 16 << 20, 64 << 20, false, nil},
		{"a small one of a few bytes", "gzip", strings.Repeat("x", 900<<10), 16 << 20, 64 << 20, false, nil},
		{"a bomb", "gzip", strings.Repeat("x", 15<<20), 16 << 20, 64 << 20, false, ErrTooLarge},
		{"another one", "zstd", strings.Repeat("x", 15<<20), 16 << 20, 64 << 20, false, ErrTooLarge},
		{"another one", "deflate", strings.Repeat("x", 15<<20), 16 << 20, 64 << 20, false, ErrTooLarge},
		{"too long", "gzip", words(3 << 20), 2 << 20, 64 << 20, false, ErrTooLarge},
		{"no memory", "gzip", words(3 << 20), 16 << 20, 2 << 20, false, ErrBusy},
		{"no memory for the window", "zstd", words(3 << 20), 16 << 20, 1 << 20, false, ErrBusy},
		{"a window that is too large", "zstd, a large window", words(3 << 20), 80 << 20, 1 << 30, false, zstd.ErrWindowSizeExceeded},
		{"no time", "gzip", words(3 << 20), 16 << 20, 64 << 20, true, ErrLate},
	} {
		b := budget.New(tc.budget)
		share := b.Share()
		d := Decoding{Max: tc.max, Ratio: 100, Share: &share}
		if tc.late {
			d.Until = time.Now().Add(-time.Second)
		}
		name, _, _ := strings.Cut(tc.encoding, ",")
		plain, err := Decode(name, encode(t, tc.encoding, tc.text), d)
		switch {
		case !errors.Is(err, tc.want):
			t.Errorf("%s (%s): %d bytes, %v; want %v", tc.name, tc.encoding, len(plain), err, tc.want)
		case err != nil && (share.Held() != 0 || b.Used() != 0 || plain != nil):
			t.Errorf("%s (%s): %d bytes are still held", tc.name, tc.encoding, share.Held())
		case err == nil && (string(plain) != tc.text || share.Held() != cap(plain)):
			t.Errorf("%s (%s): %d bytes of %d, %d held of %d", tc.name, tc.encoding, len(plain), len(tc.text), share.Held(), cap(plain))
		}
	}
}

// TestAnswersAreBoundedTogether checks that an answer is given up if the budget has no room
// for it, and that its memory is released in any case.
func TestAnswersAreBoundedTogether(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	body := `{"choices":[{"index":0,"message":{"content":"` + long + `"},"finish_reason":"stop"}]}`
	for _, tc := range []struct {
		name   string
		meta   Meta
		body   string
		budget int
		told   bool
	}{
		{"whole", Meta{}, body, 16 << 20, true},
		{"whole, no memory", Meta{}, body, 1 << 20, false},
		{"an event", Meta{}, "data: " + body + "\n\n", 16 << 20, true},
		{"an event, no memory", Meta{}, "data: " + body + "\n\n", 1 << 20, false},
		{"compressed", Meta{Encoding: "gzip"}, string(encode(t, "gzip", body)), 16 << 20, true},
		{"compressed, no memory", Meta{Encoding: "gzip"}, string(encode(t, "gzip", body)), 512 << 10, false},
	} {
		b := budget.New(tc.budget)
		w := New(slog.New(slog.DiscardHandler), b)
		told := make(chan dialect.Answer, 1)
		tee := w.Read(chat.Dialect{}.NewReader(""), tc.meta, func(a dialect.Answer, _ bool) { told <- a })
		for part := tc.body; len(part) > 0; part = part[min(len(part), 4<<10):] {
			tee.Write([]byte(part[:min(len(part), 4<<10)]))
		}
		tee.Close(true)
		w.Close()
		select {
		case a := <-told:
			if tc.told != (a.End == dialect.EndStop) {
				t.Errorf("%s: told %d", tc.name, a.End)
			}
		default:
			if tc.told {
				t.Errorf("%s: nothing told", tc.name)
			}
		}
		if b.Used() != 0 {
			t.Errorf("%s: %d bytes stay taken", tc.name, b.Used())
		}
	}
}

// TestGivenUpIsGivenBack checks that an answer is dropped when the budget is full, and releases
// its memory at once.
func TestGivenUpIsGivenBack(t *testing.T) {
	b := budget.New(300 << 10)
	w := New(slog.New(slog.DiscardHandler), b)
	defer w.Close()
	tee := w.Read(chat.Dialect{}.NewReader(""), Meta{}, func(dialect.Answer, bool) { t.Error("a dropped answer was reported") })
	tee.Write(bytes.Repeat([]byte("{"), 64<<10))
	others := b.Share()
	if b.Used() < 64<<10 || !others.Grow(220<<10-b.Used()) {
		t.Fatalf("%d bytes are taken", b.Used())
	}
	tee.Write(bytes.Repeat([]byte("{"), 128<<10))
	others.Release()
	if tee.Close(true); b.Used() != 0 || w.Dropped() != 1 {
		t.Errorf("%d bytes stay taken, %d answers were dropped; want 0, 1", b.Used(), w.Dropped())
	}
}

// TestTeeIsClosedTwice checks that only the first Close counts.
func TestTeeIsClosedTwice(t *testing.T) {
	b := budget.New(1 << 20)
	w := New(slog.New(slog.DiscardHandler), b)
	told := make(chan bool, 2)
	tee := w.Read(chat.Dialect{}.NewReader(""), Meta{}, func(_ dialect.Answer, clean bool) { told <- clean })
	tee.Write([]byte(`{}`))
	tee.Close(true)
	tee.Close(false)
	tee.Write([]byte(`{}`))
	w.Close()
	if len(told) != 1 || !<-told || b.Used() != 0 {
		t.Errorf("told %d times more; %d bytes stay taken", len(told), b.Used())
	}
}
