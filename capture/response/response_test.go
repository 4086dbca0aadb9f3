package response

import (
	"bytes"
	"compress/zlib"
	"io"
	"log/slog"
	"reflect"
	"strings"
	"testing"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	brrr "github.com/molecule-man/go-brrr"
	"go.uber.org/goleak"

	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect/chat"
	"github.com/graphiti-proxy/graphiti-proxy/internal/helptest"
)

var must = helptest.Must

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	first  = `data: {"choices":[{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"finish_reason":null}],"obfuscation":"x"}` + "\n\n"
	hello  = `data: {"choices":[{"index":0,"delta":{"content":"Hello"},"finish_reason":null}]}` + "\n\n"
	finish = `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\n"
	usage  = `data: {"choices":[],"usage":{"total_tokens":3}}` + "\n\n"
	done   = "data: [DONE]\n\n"
)

const whole = `{"choices":[{"index":0,"message":{"role":"assistant","content":"Hello","refusal":null},"finish_reason":"stop"},{"index":1,"message":{"content":"no"},"finish_reason":"stop"}]}`

func encode(t *testing.T, encoding, s string) []byte {
	t.Helper()
	var b bytes.Buffer
	var w io.WriteCloser
	switch encoding {
	case "gzip":
		w = gzip.NewWriter(&b)
	case "deflate":
		w = zlib.NewWriter(&b)
	case "raw deflate":
		w, _ = flate.NewWriter(&b, 6)
	case "br":
		w = brotliWriter(&b)
	case "zstd":
		w, _ = zstd.NewWriter(&b, zstd.WithWindowSize(4<<20))
	case "zstd, a large window":
		w, _ = zstd.NewWriter(&b, zstd.WithWindowSize(64<<20))
	default:
		return []byte(s)
	}
	for part := s; len(part) > 0; part = part[min(len(part), 1<<20):] {
		must(t, helptest.ErrorOf(io.WriteString(w, part[:min(len(part), 1<<20)])))
	}
	must(t, w.Close())
	return b.Bytes()
}

func TestWatchedAnswers(t *testing.T) {
	for _, encoding := range []string{"", "identity", "gzip", "deflate", "raw deflate", "br", "zstd"} {
		for _, streamed := range []bool{true, false} {
			body := whole
			if streamed {
				body = first + hello + finish + done
			}
			w := New(slog.New(slog.DiscardHandler), nil)
			var got dialect.Answer
			var clean bool
			name := strings.TrimPrefix(encoding, "raw ")
			tee := w.Read(chat.Dialect{}.NewReader(""), Meta{Encoding: name}, func(a dialect.Answer, c bool) { got, clean = a, c })
			for _, b := range encode(t, encoding, body) {
				tee.Write([]byte{b})
			}
			tee.Close(true)
			w.Close()
			if want := (dialect.Answer{Text: "Hello", End: dialect.EndStop}); !reflect.DeepEqual(got, want) || !clean {
				t.Errorf("%q, streamed %v: %+v, clean %v", encoding, streamed, got, clean)
			}
		}
	}
}

func TestWatcherWithBadInput(t *testing.T) {
	w := New(slog.New(slog.DiscardHandler), nil)
	if tee := w.Read(chat.Dialect{}.NewReader(""), Meta{Encoding: "compress"}, nil); tee != nil {
		t.Error("an unknown encoding is answer")
	}
	var none *Tee // the relay's Tee for such an answer
	none.Write([]byte("x"))
	none.Close(true)
	calls := 0
	bomb := w.Read(chat.Dialect{}.NewReader(""), Meta{}, func(dialect.Answer, bool) { panic("boom") })
	bomb.Close(true)
	broken := w.Read(chat.Dialect{}.NewReader(""), Meta{Encoding: "gzip"}, func(a dialect.Answer, clean bool) {
		if calls++; a.End != dialect.EndUnknown || clean {
			t.Errorf("got %+v, clean %v; want an answer without an end", a, clean)
		}
	})
	broken.Write([]byte("no gzip"))
	broken.Close(false)
	large := w.Read(chat.Dialect{}.NewReader(""), Meta{}, func(dialect.Answer, bool) { t.Error("a body that was too large was read") })
	for range maxHeld>>16 + 1 {
		large.Write(bytes.Repeat([]byte("{"), 1<<16))
	}
	large.Close(true)
	panicking := w.Read(panics{}, Meta{}, func(dialect.Answer, bool) { t.Error("an answer that broke its reader was reported") })
	panicking.Write([]byte("{}"))
	panicking.Close(true)
	w.Close()
	if calls != 1 || w.Dropped() != 2 {
		t.Errorf("%d calls, %d dropped", calls, w.Dropped())
	}
}

// panics is a reader with a Body that panics.
type panics struct{}

func (panics) Event(_, _ []byte)          {}
func (panics) Body([]byte)                { panic("boom") }
func (panics) Answer() (_ dialect.Answer) { return }

func brotliWriter(b *bytes.Buffer) io.WriteCloser {
	w, err := brrr.NewWriter(b, 5)
	if err != nil {
		panic(err)
	}
	return w
}

// TestForm checks that the bytes of an answer determine its form, even after leading
// comments, empty lines or a byte order mark.
func TestForm(t *testing.T) {
	for _, tc := range []struct {
		name, body string
		end        dialect.End
	}{
		{"events", hello + finish, dialect.EndStop},
		{"events behind a comment", ": PROCESSING\n\n" + hello + finish, dialect.EndStop},
		{"events behind empty lines", "\r\n\n" + hello + finish, dialect.EndStop},
		{"events behind a byte order mark", "\xef\xbb\xbf" + hello + finish, dialect.EndStop},
		{"a document", whole, dialect.EndStop},
		{"a document behind empty lines", "\n\n \n" + whole, dialect.EndStop},
		{"neither", "<html>", dialect.EndUnknown},
		{"white space", "\n \n", dialect.EndUnknown},
		{"nothing", "", dialect.EndUnknown},
	} {
		for _, encoding := range []string{"", "gzip"} {
			w := New(slog.New(slog.DiscardHandler), nil)
			var got dialect.Answer
			tee := w.Read(chat.Dialect{}.NewReader(""), Meta{Encoding: encoding}, func(a dialect.Answer, _ bool) { got = a })
			for _, b := range encode(t, encoding, tc.body) {
				tee.Write([]byte{b})
			}
			tee.Close(true)
			w.Close()
			if got.End != tc.end {
				t.Errorf("%s, encoding %q: got end %v, want %v", tc.name, encoding, got.End, tc.end)
			}
		}
	}
}
