package dialect_test

import (
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/dialect"
	"github.com/graphiti-proxy/graphiti-proxy/dialect/chat"
	"github.com/graphiti-proxy/graphiti-proxy/dialect/messages"
	"github.com/graphiti-proxy/graphiti-proxy/dialect/responses"
)

// TestUsage of the three APIs, streamed and not, as they say it.
func TestUsage(t *testing.T) {
	want := dialect.Usage{Input: 2006, Cached: 1920, Output: 300}
	for name, tc := range map[string]struct {
		d      dialect.Dialect
		events []string
		body   string
		want   dialect.Usage
	}{
		"chat, streamed": {chat.Dialect{}, []string{
			`{"choices":[{"index":0,"delta":{"content":"a"}}],"usage":null}`,
			`{"choices":[],"usage":{"prompt_tokens":2006,"completion_tokens":300,"total_tokens":2306,"prompt_tokens_details":{"cached_tokens":1920,"audio_tokens":0}}}`,
			`[DONE]`,
		}, "", want},
		"chat":                {chat.Dialect{}, nil, `{"choices":[],"usage":{"prompt_tokens":2006,"completion_tokens":300,"prompt_tokens_details":{"cached_tokens":1920}}}`, want},
		"chat, nothing said":  {chat.Dialect{}, nil, `{"choices":[]}`, dialect.Usage{}},
		"chat, nonsense":      {chat.Dialect{}, nil, `{"choices":[],"usage":{"prompt_tokens":-5,"completion_tokens":"x","prompt_tokens_details":7}}`, dialect.Usage{}},
		"responses, streamed": {responses.Dialect{}, []string{`{"type":"response.completed","response":{"status":"completed","usage":{"input_tokens":2006,"input_tokens_details":{"cached_tokens":1920},"output_tokens":300}}}`}, "", want},
		"messages, streamed": {messages.Dialect{}, []string{
			`{"type":"message_start","message":{"usage":{"input_tokens":6,"cache_creation_input_tokens":80,"cache_read_input_tokens":1920,"output_tokens":1}}}`,
			`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":300}}`,
			`{"type":"message_stop"}`,
		}, "", want},
		"messages": {messages.Dialect{}, nil, `{"type":"message","stop_reason":"end_turn","content":[],"usage":{"input_tokens":6,"cache_creation_input_tokens":80,"cache_read_input_tokens":1920,"output_tokens":300}}`, want},
	} {
		r := tc.d.NewReader()
		for _, e := range tc.events {
			r.Event(nil, []byte(e))
		}
		if tc.body != "" {
			r.Body([]byte(tc.body))
		}
		if got := r.Answer().Usage; got != tc.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
