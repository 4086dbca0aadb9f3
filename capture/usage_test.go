package capture

import "testing"

// TestUsage of the three APIs, streamed and not, as they say it.
func TestUsage(t *testing.T) {
	want := Usage{Input: 2006, Cached: 1920, Output: 300}
	for name, tc := range map[string]struct {
		dialect Dialect
		events  []string
		body    string
		want    Usage
	}{
		"chat, streamed": {Chat{}, []string{
			`{"choices":[{"index":0,"delta":{"content":"a"}}],"usage":null}`,
			`{"choices":[],"usage":{"prompt_tokens":2006,"completion_tokens":300,"total_tokens":2306,"prompt_tokens_details":{"cached_tokens":1920,"audio_tokens":0}}}`,
			`[DONE]`,
		}, "", want},
		"chat":                {Chat{}, nil, `{"choices":[],"usage":{"prompt_tokens":2006,"completion_tokens":300,"prompt_tokens_details":{"cached_tokens":1920}}}`, want},
		"chat, nothing said":  {Chat{}, nil, `{"choices":[]}`, Usage{}},
		"chat, nonsense":      {Chat{}, nil, `{"choices":[],"usage":{"prompt_tokens":-5,"completion_tokens":"x","prompt_tokens_details":7}}`, Usage{}},
		"responses, streamed": {Responses{}, []string{`{"type":"response.completed","response":{"status":"completed","usage":{"input_tokens":2006,"input_tokens_details":{"cached_tokens":1920},"output_tokens":300}}}`}, "", want},
		"messages, streamed": {Messages{}, []string{
			`{"type":"message_start","message":{"usage":{"input_tokens":6,"cache_creation_input_tokens":80,"cache_read_input_tokens":1920,"output_tokens":1}}}`,
			`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":300}}`,
			`{"type":"message_stop"}`,
		}, "", want},
		"messages": {Messages{}, nil, `{"type":"message","stop_reason":"end_turn","content":[],"usage":{"input_tokens":6,"cache_creation_input_tokens":80,"cache_read_input_tokens":1920,"output_tokens":300}}`, want},
	} {
		r := tc.dialect.NewReader()
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
