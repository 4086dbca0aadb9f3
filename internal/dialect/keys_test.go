package dialect_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect/chat"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect/gemini"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect/messages"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect/responses"
)

func TestAnswerKeys(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		reader dialect.Reader
		events []string // or one body
		want   []string
	}{
		{"chat, streamed", chat.Dialect{}.NewReader(""), []string{
			`{"id":"chatcmpl-1","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_1","function":{"name":"f","arguments":"{"}}]}}]}`,
			`{"id":"chatcmpl-1","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"}"}}]},"finish_reason":"tool_calls"}]}`,
		}, []string{"chatcmpl-1", "call_1"}},
		{"chat", chat.Dialect{}.NewReader(""), []string{`{"id":"chatcmpl-1","choices":[{"index":0,"message":{"content":"hi"},"finish_reason":"stop"}]}`}, []string{"chatcmpl-1"}},
		{"messages, streamed", messages.Dialect{}.NewReader(""), []string{
			`{"type":"message_start","message":{"id":"msg_1"}}`,
			`{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"toolu_1","name":"f","input":{}}}`,
		}, []string{"msg_1", "toolu_1"}},
		{"messages", messages.Dialect{}.NewReader(""), []string{`{"type":"message","id":"msg_1","content":[{"type":"tool_use","id":"toolu_1"}],"stop_reason":"tool_use"}`}, []string{"msg_1", "toolu_1"}},
		{"responses, streamed", responses.Dialect{}.NewReader(""), []string{
			`{"type":"response.output_item.done","item":{"type":"message","id":"item_1","content":[{"type":"output_text","text":"hi"}]}}`,
			`{"type":"response.completed","response":{"id":"resp_1","status":"completed","output":[{"type":"function_call","call_id":"call_1","arguments":"{}"}]}}`,
		}, []string{"item_1", "resp_1", "call_1"}},
		{"gemini", gemini.Dialect{}.NewReader(""), []string{`{"responseId":"r1","candidates":[{"index":0,"content":{"parts":[{"text":"hi"}]},"finishReason":"STOP"}]}`}, []string{"r1"}},
	} {
		for _, e := range c.events {
			if strings.Contains(c.name, "streamed") {
				c.reader.Event(nil, []byte(e))
			} else {
				c.reader.Body([]byte(e))
			}
		}
		if got := c.reader.Answer().Keys; !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

func TestKeys_Bounds(t *testing.T) {
	t.Parallel()
	var k dialect.Keys
	k.Add(strings.Repeat("x", 1000))
	for i := range 100 {
		k.Add(fmt.Sprint("id", i/2))
	}
	if len(k) != 16 || k[0] != "id0" || k[1] != "id1" {
		t.Errorf("got %d keys, %q first; want 16 distinct short ones", len(k), k[:2])
	}
}
