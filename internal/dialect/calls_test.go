package dialect_test

import (
	"slices"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect/chat"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect/gemini"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect/messages"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect/responses"
)

// TestTextsOfCalls: the strings in the arguments of an answer's calls, whole, in
// pieces, and in JSON within a string.
func TestTextsOfCalls(t *testing.T) {
	for name, tc := range map[string]struct {
		reader dialect.Reader
		events []string
		body   string
		want   []string
	}{
		"chat": {reader: chat.Dialect{}.NewReader(""), body: `{"choices":[{"message":{"tool_calls":[{"function":{"arguments":"{\"a\":\" one \",\"n\":1}"}},{"function":{"arguments":"{\"b\":[\"two\"]}"}}]},"finish_reason":"tool_calls"}]}`, want: []string{"one", "two"}},
		"chat, in pieces": {reader: chat.Dialect{}.NewReader(""), events: []string{
			`{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"name":"x","arguments":"{\"a\":\"o"}}]}}]}`,
			`{"choices":[{"delta":{"tool_calls":[{"index":1,"function":{"arguments":"{\"b\":\"two\"}"}}]}}]}`,
			`{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"ne\"}"}}]}}]}`,
		}, want: []string{"one", "two"}},
		"messages": {reader: messages.Dialect{}.NewReader(""), body: `{"type":"message","content":[{"type":"tool_use","input":{"a":"one"}},{"type":"tool_use","input":{"b":"two"}}],"stop_reason":"tool_use"}`, want: []string{"one", "two"}},
		"messages, in pieces": {reader: messages.Dialect{}.NewReader(""), events: []string{
			`{"type":"content_block_start","content_block":{"type":"tool_use","input":{}}}`,
			`{"type":"content_block_delta","delta":{"type":"input_json_delta","partial_json":"{\"a\":"}}`,
			`{"type":"content_block_delta","delta":{"type":"input_json_delta","partial_json":"\"one\"}"}}`,
			`{"type":"content_block_start","content_block":{"type":"tool_use","input":{}}}`,
			`{"type":"content_block_delta","delta":{"type":"input_json_delta","partial_json":"{\"b\":\"two\"}"}}`,
		}, want: []string{"one", "two"}},
		"responses":              {reader: responses.Dialect{}.NewReader(""), body: `{"status":"completed","output":[{"type":"function_call","arguments":"{\"a\":\"one\"}"}]}`, want: []string{"one"}},
		"gemini":                 {reader: gemini.Dialect{}.NewReader(""), body: `{"candidates":[{"content":{"parts":[{"functionCall":{"name":"x","args":{"a":"one"}}}]}}]}`, want: []string{"one"}},
		"JSON within a string":   {reader: gemini.Dialect{}.NewReader(""), body: `{"candidates":[{"content":{"parts":[{"functionCall":{"args":{"a":"{\"b\":\"one\"}"}}}]}}]}`, want: []string{`{"b":"one"}`, "one"}},
		"arguments that are cut": {reader: chat.Dialect{}.NewReader(""), body: `{"choices":[{"message":{"tool_calls":[{"function":{"arguments":"{\"a\":"}}]}}]}`},
		"no calls":               {reader: chat.Dialect{}.NewReader(""), body: `{"choices":[{"message":{"content":"hello"},"finish_reason":"stop"}]}`},
	} {
		for _, e := range tc.events {
			tc.reader.Event(nil, []byte(e))
		}
		if tc.body != "" {
			tc.reader.Body([]byte(tc.body))
		}
		a := tc.reader.Answer()
		if got := a.Calls.Texts(); !slices.Equal(got, tc.want) {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
}
