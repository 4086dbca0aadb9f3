package capture

import (
	"bytes"
	"compress/zlib"
	"context"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	brrr "github.com/molecule-man/go-brrr"
	"pgregory.net/rapid"
)

// read assembles a stream fed in the given pieces.
func read(pieces ...[]byte) Answer {
	r := Chat{}.NewReader()
	s := sseReader{emit: r.Event}
	for _, p := range pieces {
		s.feed(p)
	}
	s.end()
	return r.Answer()
}

const (
	first  = `data: {"choices":[{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"finish_reason":null}],"obfuscation":"x"}` + "\n\n"
	hello  = `data: {"choices":[{"index":0,"delta":{"content":"Hello"},"finish_reason":null}]}` + "\n\n"
	world  = `data: {"choices":[{"index":0,"delta":{"content":" wörld"},"finish_reason":null}]}` + "\n\n"
	finish = `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\n"
	usage  = `data: {"choices":[],"usage":{"total_tokens":3}}` + "\n\n"
	done   = "data: [DONE]\n\n"

	chatCall = `data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]},"finish_reason":null}]}` + "\n\n"
)

func TestStreamedAnswers(t *testing.T) {
	for _, tc := range []struct {
		name   string
		stream string
		want   Answer
	}{
		{"plain", first + hello + world + finish + usage + done, Answer{Text: "Hello wörld", End: EndStop}},
		{"no [DONE]", first + hello + finish, Answer{Text: "Hello", End: EndStop}},
		{"no empty line at the end", first + hello + strings.TrimSpace(finish), Answer{Text: "Hello", End: EndStop}},
		{"CRLF and comments", strings.ReplaceAll(": keep-alive\n\n"+first+": OPENROUTER PROCESSING\n\n"+hello+finish+done, "\n", "\r\n"), Answer{Text: "Hello", End: EndStop}},
		{"CR alone", strings.ReplaceAll(hello+finish, "\n", "\r"), Answer{Text: "Hello", End: EndStop}},
		{"no space behind the colon", strings.ReplaceAll(hello+finish, "data: ", "data:"), Answer{Text: "Hello", End: EndStop}},
		{"data in several lines", strings.ReplaceAll(hello+finish, `{"choices":`, "{\ndata: \"choices\":"), Answer{Text: "Hello", End: EndStop}},
		{"byte order mark", "\xef\xbb\xbf" + hello + finish, Answer{Text: "Hello", End: EndStop}},
		{"several choices", hello + strings.Replace(world, `"index":0`, `"index":1`, 1) + finish, Answer{Text: "Hello", End: EndStop}},
		{"prompt filter of Azure", `data: {"choices":[],"prompt_filter_results":[]}` + "\n\n" + hello + finish, Answer{Text: "Hello", End: EndStop}},
		{"reasoning is not the answer", `data: {"choices":[{"index":0,"delta":{"reasoning_content":"hm","reasoning":"hm"}}]}` + "\n\n" + hello + finish, Answer{Text: "Hello", End: EndStop}},
		{"thoughts within the answer", strings.Replace(hello, "Hello", "<think>hm</think>\\n\\nHello", 1) + finish, Answer{Text: "Hello", End: EndStop}},
		{"tool calls", first + `data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{"}}]}}]}` + "\n\n" + strings.Replace(finish, "stop", "tool_calls", 1), Answer{Text: "", End: EndToolCalls}},
		{"tool calls that end with stop", first + chatCall + finish + done, Answer{Text: "", End: EndToolCalls}},
		{"text and tool calls that end with stop", hello + chatCall + finish + done, Answer{Text: "Hello", End: EndToolCalls}},
		{"a call as it was before tools", `data: {"choices":[{"index":0,"delta":{"function_call":{"name":"f","arguments":""}}}]}` + "\n\n" + finish, Answer{Text: "", End: EndToolCalls}},
		{"call and end in one event", `data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"stop"}]}` + "\n\n", Answer{Text: "", End: EndToolCalls}},
		{"no calls, said in so many words", strings.Replace(hello, `"content"`, `"tool_calls":[],"function_call":null,"content"`, 1) + finish, Answer{Text: "Hello", End: EndStop}},
		{"a call that was cut at the token limit", chatCall + strings.Replace(finish, "stop", "length", 1), Answer{Text: "", End: EndLength}},
		{"a call of another choice", strings.Replace(chatCall, `"index":0,"delta"`, `"index":1,"delta"`, 1) + hello + finish, Answer{Text: "Hello", End: EndStop}},
		{"token limit", hello + strings.Replace(finish, "stop", "length", 1), Answer{Text: "Hello", End: EndLength}},
		{"filtered", hello + strings.Replace(finish, "stop", "content_filter", 1), Answer{Text: "Hello", End: EndFilter}},
		{"refusal", `data: {"choices":[{"index":0,"delta":{"refusal":"no"}}]}` + "\n\n" + finish, Answer{Text: "", End: EndFilter}},
		{"error in the stream", hello + `data: {"error":{"message":"x"}}` + "\n\n", Answer{End: EndError}},
		{"error after the finish", hello + finish + `data: {"error":{"message":"x"}}` + "\n\n", Answer{End: EndError}},
		{"vLLM's error", hello + `data: {"object":"error","message":"x"}` + "\n\n", Answer{End: EndError}},
		{"OpenRouter's error", `data: {"error":{"code":502},"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}]}` + "\n\n", Answer{End: EndError}},
		{"error: null is none", strings.Replace(hello, `{"choices"`, `{"error":null,"choices"`, 1) + finish, Answer{Text: "Hello", End: EndStop}},
		{"cut off", first + hello, Answer{Text: "Hello", End: EndUnknown}},
		{"audio", `data: {"choices":[{"index":0,"delta":{"audio":{"transcript":"Hi"}}}]}` + "\n\n" + finish, Answer{Text: "Hi", End: EndStop}},
		{"garbage", "data: {{{\n\nfoo\n\n\x00\xff\n" + hello + finish, Answer{Text: "Hello", End: EndStop}},
		{"nothing", "", Answer{Text: "", End: EndUnknown}},
		{"an event that is too large is skipped", "data: " + strings.Repeat("x", maxEvent+1) + "\n\n" + hello + finish, Answer{Text: "Hello", End: EndStop}},
	} {
		if diff := cmp.Diff(tc.want, read([]byte(tc.stream))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
	}
}

// TestChunkingDoesNotMatter: any pieces of the same bytes are the same answer.
func TestChunkingDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		stream := first + hello + world + finish + usage + done
		stream = strings.ReplaceAll(stream, "\n", rapid.SampledFrom([]string{"\n", "\r\n", "\r"}).Draw(t, "line end"))
		var pieces [][]byte
		for rest := []byte(stream); len(rest) > 0; {
			n := rapid.IntRange(1, min(len(rest), 40)).Draw(t, "n")
			pieces, rest = append(pieces, rest[:n]), rest[n:]
		}
		if got, want := read(pieces...), (Answer{Text: "Hello wörld", End: EndStop}); got != want {
			t.Fatalf("%+v", got)
		}
	})
}

func FuzzStreamedAnswer(f *testing.F) {
	f.Add([]byte(first+hello+world+finish+done), 7)
	f.Add([]byte("data:\r\rdata: {\"choices\":[{}]}\r\n\r\nevent: x\n:"), 1)
	f.Fuzz(func(t *testing.T, stream []byte, size int) {
		want := read(stream)
		size = 1 + (size&0xffff)%64
		var pieces [][]byte
		for rest := stream; len(rest) > 0; {
			n := min(size, len(rest))
			pieces, rest = append(pieces, rest[:n]), rest[n:]
		}
		if got := read(pieces...); got != want {
			t.Errorf("in pieces of %d: %+v, whole: %+v", size, got, want)
		}
	})
}

const whole = `{"choices":[{"index":0,"message":{"role":"assistant","content":"Hello","refusal":null},"finish_reason":"stop"},{"index":1,"message":{"content":"no"},"finish_reason":"stop"}]}`

// TestWholeAnswersThatCall: an answer that is not streamed and calls a tool is
// no end of a turn, whatever reason it gives.
func TestWholeAnswersThatCall(t *testing.T) {
	for name, tc := range map[string]struct {
		dialect Dialect
		body    string
		want    End
	}{
		"chat":               {Chat{}, `{"choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"stop"}]}`, EndToolCalls},
		"chat, a function":   {Chat{}, `{"choices":[{"index":0,"message":{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{}"}},"finish_reason":"stop"}]}`, EndToolCalls},
		"messages":           {Messages{}, `{"type":"message","content":[{"type":"tool_use","id":"t","name":"f","input":{}}],"stop_reason":"end_turn"}`, EndToolCalls},
		"messages, a search": {Messages{}, `{"type":"message","content":[{"type":"server_tool_use","id":"t","name":"web_search","input":{}},{"type":"text","text":"Hi"}],"stop_reason":"end_turn"}`, EndStop},
		"responses":          {Responses{}, `{"status":"completed","output":[{"type":"function_call","name":"f"}]}`, EndToolCalls},
		"responses, a shell": {Responses{}, `{"status":"completed","output":[{"type":"local_shell_call","action":{}}]}`, EndToolCalls},
	} {
		r := tc.dialect.NewReader()
		r.Body([]byte(tc.body))
		if got := r.Answer().End; got != tc.want {
			t.Errorf("%s: %d, want %d", name, got, tc.want)
		}
	}
}

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
		w, _ = zstd.NewWriter(&b)
	default:
		return []byte(s)
	}
	if _, err := io.WriteString(w, s); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestWatchedAnswers(t *testing.T) {
	for _, encoding := range []string{"", "identity", "gzip", "deflate", "raw deflate", "br", "zstd"} {
		for _, streamed := range []bool{true, false} {
			body := whole
			if streamed {
				body = first + hello + finish + done
			}
			w := NewWatcher(slog.New(slog.DiscardHandler), nil)
			var got Answer
			var clean bool
			name := strings.TrimPrefix(encoding, "raw ")
			tee := w.Watch(Chat{}, Meta{Stream: streamed, Encoding: name}, func(a Answer, c bool) { got, clean = a, c })
			for _, b := range encode(t, encoding, body) {
				tee.Write([]byte{b})
			}
			tee.Close(true)
			w.Close()
			if want := (Answer{Text: "Hello", End: EndStop}); got != want || !clean {
				t.Errorf("%q, streamed %v: %+v, clean %v", encoding, streamed, got, clean)
			}
		}
	}
}

func TestWatcherSurvivesWhatItReads(t *testing.T) {
	w := NewWatcher(slog.New(slog.DiscardHandler), nil)
	if tee := w.Watch(Chat{}, Meta{Encoding: "compress"}, nil); tee != nil {
		t.Error("an unknown encoding is watched")
	}
	var none *Tee // what the relay then uses
	none.Write([]byte("x"))
	none.Close(true)
	calls := 0
	bomb := w.Watch(Chat{}, Meta{Stream: true}, func(Answer, bool) { panic("boom") })
	bomb.Close(true)
	broken := w.Watch(Chat{}, Meta{Stream: true, Encoding: "gzip"}, func(a Answer, clean bool) {
		if calls++; a.End != EndUnknown || clean {
			t.Errorf("%+v, %v", a, clean)
		}
	})
	broken.Write([]byte("no gzip"))
	broken.Close(false)
	large := w.Watch(Chat{}, Meta{}, func(Answer, bool) { t.Error("a body that was too large was read") })
	for range maxHeld/segment + 1 {
		large.Write(make([]byte, segment))
	}
	large.Close(true)
	w.Watch(panics{}, Meta{}, func(Answer, bool) { t.Error("an answer that broke its reader was reported") }).Close(true)
	w.Close()
	if calls != 1 || w.Dropped() != 2 {
		t.Errorf("%d calls, %d dropped", calls, w.Dropped())
	}
}

// panics is a reader that breaks.
type panics struct{}

func (panics) NewReader() Reader  { return panics{} }
func (panics) Event(_, _ []byte)  {}
func (panics) Body([]byte)        { panic("boom") }
func (panics) Answer() (_ Answer) { return }

// BenchmarkTee copies a stream of 1,000 chunks.
func BenchmarkTee(b *testing.B) {
	w := NewWatcher(slog.New(slog.DiscardHandler), nil)
	defer w.Close()
	b.ReportAllocs()
	for b.Loop() {
		ctx, cancel := context.WithCancel(context.Background())
		tee := w.Watch(Chat{}, Meta{Stream: true}, func(Answer, bool) { cancel() })
		for range 1000 {
			tee.Write([]byte(hello))
		}
		tee.Close(true)
		<-ctx.Done()
	}
}

func brotliWriter(b *bytes.Buffer) io.WriteCloser {
	w, err := brrr.NewWriter(b, 5)
	if err != nil {
		panic(err)
	}
	return w
}
