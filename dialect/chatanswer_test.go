package dialect_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/graphiti-proxy/graphiti-proxy/dialect"
	"github.com/graphiti-proxy/graphiti-proxy/dialect/chat"
	"github.com/graphiti-proxy/graphiti-proxy/dialect/messages"
	"github.com/graphiti-proxy/graphiti-proxy/dialect/responses"
	"github.com/graphiti-proxy/graphiti-proxy/dialect/sse"
)

// read assembles a stream fed in the given pieces.
func read(pieces ...[]byte) dialect.Answer {
	r := chat.Dialect{}.NewReader()
	s := sse.Reader{Emit: r.Event}
	for _, p := range pieces {
		s.Feed(p)
	}
	s.End()
	return r.Answer()
}

const (
	chatFirst  = `data: {"choices":[{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"finish_reason":null}],"obfuscation":"x"}` + "\n\n"
	chatHello  = `data: {"choices":[{"index":0,"delta":{"content":"Hello"},"finish_reason":null}]}` + "\n\n"
	chatWorld  = `data: {"choices":[{"index":0,"delta":{"content":" wörld"},"finish_reason":null}]}` + "\n\n"
	chatFinish = `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\n"
	chatUsage  = `data: {"choices":[],"usage":{"total_tokens":3}}` + "\n\n"
	chatDone   = "data: [DONE]\n\n"

	chatCall = `data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]},"finish_reason":null}]}` + "\n\n"
)

func TestStreamedAnswers(t *testing.T) {
	for _, tc := range []struct {
		name   string
		stream string
		want   dialect.Answer
	}{
		{"plain", chatFirst + chatHello + chatWorld + chatFinish + chatUsage + chatDone, dialect.Answer{Text: "Hello wörld", End: dialect.EndStop}},
		{"no [DONE]", chatFirst + chatHello + chatFinish, dialect.Answer{Text: "Hello", End: dialect.EndStop}},
		{"no empty line at the end", chatFirst + chatHello + strings.TrimSpace(chatFinish), dialect.Answer{Text: "Hello", End: dialect.EndStop}},
		{"CRLF and comments", strings.ReplaceAll(": keep-alive\n\n"+chatFirst+": OPENROUTER PROCESSING\n\n"+chatHello+chatFinish+chatDone, "\n", "\r\n"), dialect.Answer{Text: "Hello", End: dialect.EndStop}},
		{"CR alone", strings.ReplaceAll(chatHello+chatFinish, "\n", "\r"), dialect.Answer{Text: "Hello", End: dialect.EndStop}},
		{"no space behind the colon", strings.ReplaceAll(chatHello+chatFinish, "data: ", "data:"), dialect.Answer{Text: "Hello", End: dialect.EndStop}},
		{"data in several lines", strings.ReplaceAll(chatHello+chatFinish, `{"choices":`, "{\ndata: \"choices\":"), dialect.Answer{Text: "Hello", End: dialect.EndStop}},
		{"byte order mark", "\xef\xbb\xbf" + chatHello + chatFinish, dialect.Answer{Text: "Hello", End: dialect.EndStop}},
		{"several choices", chatHello + strings.Replace(chatWorld, `"index":0`, `"index":1`, 1) + chatFinish, dialect.Answer{Text: "Hello", End: dialect.EndStop}},
		{"prompt filter of Azure", `data: {"choices":[],"prompt_filter_results":[]}` + "\n\n" + chatHello + chatFinish, dialect.Answer{Text: "Hello", End: dialect.EndStop}},
		{"reasoning is not the answer", `data: {"choices":[{"index":0,"delta":{"reasoning_content":"hm","reasoning":"hm"}}]}` + "\n\n" + chatHello + chatFinish, dialect.Answer{Text: "Hello", End: dialect.EndStop}},
		{"thoughts within the answer", strings.Replace(chatHello, "Hello", "<think>hm</think>\\n\\nHello", 1) + chatFinish, dialect.Answer{Text: "Hello", End: dialect.EndStop}},
		{"tool calls", chatFirst + `data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{"}}]}}]}` + "\n\n" + strings.Replace(chatFinish, "stop", "tool_calls", 1), dialect.Answer{Text: "", End: dialect.EndToolCalls}},
		{"tool calls that end with stop", chatFirst + chatCall + chatFinish + chatDone, dialect.Answer{Text: "", End: dialect.EndToolCalls}},
		{"text and tool calls that end with stop", chatHello + chatCall + chatFinish + chatDone, dialect.Answer{Text: "Hello", End: dialect.EndToolCalls}},
		{"a call as it was before tools", `data: {"choices":[{"index":0,"delta":{"function_call":{"name":"f","arguments":""}}}]}` + "\n\n" + chatFinish, dialect.Answer{Text: "", End: dialect.EndToolCalls}},
		{"call and end in one event", `data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"stop"}]}` + "\n\n", dialect.Answer{Text: "", End: dialect.EndToolCalls}},
		{"no calls, said in so many words", strings.Replace(chatHello, `"content"`, `"tool_calls":[],"function_call":null,"content"`, 1) + chatFinish, dialect.Answer{Text: "Hello", End: dialect.EndStop}},
		{"a call that was cut at the token limit", chatCall + strings.Replace(chatFinish, "stop", "length", 1), dialect.Answer{Text: "", End: dialect.EndLength}},
		{"a call of another choice", strings.Replace(chatCall, `"index":0,"delta"`, `"index":1,"delta"`, 1) + chatHello + chatFinish, dialect.Answer{Text: "Hello", End: dialect.EndStop}},
		{"token limit", chatHello + strings.Replace(chatFinish, "stop", "length", 1), dialect.Answer{Text: "Hello", End: dialect.EndLength}},
		{"filtered", chatHello + strings.Replace(chatFinish, "stop", "content_filter", 1), dialect.Answer{Text: "Hello", End: dialect.EndFilter}},
		{"refusal", `data: {"choices":[{"index":0,"delta":{"refusal":"no"}}]}` + "\n\n" + chatFinish, dialect.Answer{Text: "", End: dialect.EndFilter}},
		{"error in the stream", chatHello + `data: {"error":{"message":"x"}}` + "\n\n", dialect.Answer{End: dialect.EndError}},
		{"error after the finish", chatHello + chatFinish + `data: {"error":{"message":"x"}}` + "\n\n", dialect.Answer{End: dialect.EndError}},
		{"vLLM's error", chatHello + `data: {"object":"error","message":"x"}` + "\n\n", dialect.Answer{End: dialect.EndError}},
		{"OpenRouter's error", `data: {"error":{"code":502},"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}]}` + "\n\n", dialect.Answer{End: dialect.EndError}},
		{"error: null is none", strings.Replace(chatHello, `{"choices"`, `{"error":null,"choices"`, 1) + chatFinish, dialect.Answer{Text: "Hello", End: dialect.EndStop}},
		{"cut off", chatFirst + chatHello, dialect.Answer{Text: "Hello", End: dialect.EndUnknown}},
		{"audio", `data: {"choices":[{"index":0,"delta":{"audio":{"transcript":"Hi"}}}]}` + "\n\n" + chatFinish, dialect.Answer{Text: "Hi", End: dialect.EndStop}},
		{"garbage", "data: {{{\n\nfoo\n\n\x00\xff\n" + chatHello + chatFinish, dialect.Answer{Text: "Hello", End: dialect.EndStop}},
		{"nothing", "", dialect.Answer{Text: "", End: dialect.EndUnknown}},
		{"an event that is too large is skipped", "data: " + strings.Repeat("x", sse.MaxEvent+1) + "\n\n" + chatHello + chatFinish, dialect.Answer{Text: "Hello", End: dialect.EndStop}},
	} {
		if diff := cmp.Diff(tc.want, read([]byte(tc.stream))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
	}
}

// TestChunkingDoesNotMatter: any pieces of the same bytes are the same answer.
func TestChunkingDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		stream := chatFirst + chatHello + chatWorld + chatFinish + chatUsage + chatDone
		stream = strings.ReplaceAll(stream, "\n", rapid.SampledFrom([]string{"\n", "\r\n", "\r"}).Draw(t, "line end"))
		var pieces [][]byte
		for rest := []byte(stream); len(rest) > 0; {
			n := rapid.IntRange(1, min(len(rest), 40)).Draw(t, "n")
			pieces, rest = append(pieces, rest[:n]), rest[n:]
		}
		if got, want := read(pieces...), (dialect.Answer{Text: "Hello wörld", End: dialect.EndStop}); got != want {
			t.Fatalf("%+v", got)
		}
	})
}

func FuzzStreamedAnswer(f *testing.F) {
	f.Add([]byte(chatFirst+chatHello+chatWorld+chatFinish+chatDone), 7)
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

// TestWholeAnswersThatCall: an answer that is not streamed and calls a tool is
// no end of a turn, whatever reason it gives.
func TestWholeAnswersThatCall(t *testing.T) {
	for name, tc := range map[string]struct {
		d    dialect.Dialect
		body string
		want dialect.End
	}{
		"chat":               {chat.Dialect{}, `{"choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"stop"}]}`, dialect.EndToolCalls},
		"chat, a function":   {chat.Dialect{}, `{"choices":[{"index":0,"message":{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{}"}},"finish_reason":"stop"}]}`, dialect.EndToolCalls},
		"messages":           {messages.Dialect{}, `{"type":"message","content":[{"type":"tool_use","id":"t","name":"f","input":{}}],"stop_reason":"end_turn"}`, dialect.EndToolCalls},
		"messages, a search": {messages.Dialect{}, `{"type":"message","content":[{"type":"server_tool_use","id":"t","name":"web_search","input":{}},{"type":"text","text":"Hi"}],"stop_reason":"end_turn"}`, dialect.EndStop},
		"responses":          {responses.Dialect{}, `{"status":"completed","output":[{"type":"function_call","name":"f"}]}`, dialect.EndToolCalls},
		"responses, a shell": {responses.Dialect{}, `{"status":"completed","output":[{"type":"local_shell_call","action":{}}]}`, dialect.EndToolCalls},
	} {
		r := tc.d.NewReader()
		r.Body([]byte(tc.body))
		if got := r.Answer().End; got != tc.want {
			t.Errorf("%s: %d, want %d", name, got, tc.want)
		}
	}
}
