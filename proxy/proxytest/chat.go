package proxytest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// wireMessage is a message in the API's format.
type wireMessage struct {
	Role       string          `json:"role"`
	Content    json.RawMessage `json:"content"`
	Name       string          `json:"name"`
	Refusal    *string         `json:"refusal"`
	ToolCalls  []wireCall      `json:"tool_calls"`
	ToolCallID string          `json:"tool_call_id"`
}

type wireCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

// fields lists the allowed members of a request.
var fields = strings.Fields(`model messages stream stream_options temperature top_p n max_tokens max_completion_tokens
	stop tools tool_choice parallel_tool_calls user metadata store seed logprobs top_logprobs response_format
	presence_penalty frequency_penalty logit_bias reasoning_effort safety_identifier prompt_cache_key service_tier modalities audio`)

// parts lists the types of parts that each role may send.
var parts = map[string]string{
	"system": "text", "developer": "text", "tool": "text",
	"user": "text image_url input_audio file", "assistant": "text refusal",
}

// readChat validates a request as the API does. wrong is the violation, or "".
func readChat(body []byte) (c Input, stream, usage bool, n int, wrong string) {
	if wrong = unknown(body, "", fields); wrong != "" {
		return c, false, false, 0, wrong
	}
	var r struct {
		Model    string        `json:"model"`
		Messages []wireMessage `json:"messages"`
		Stream   bool          `json:"stream"`
		N        *int          `json:"n"`
		Options  *struct {
			Usage bool `json:"include_usage"`
		} `json:"stream_options"`
		Tools []any `json:"tools"`
	}
	if err := json.Unmarshal(body, &r); err != nil {
		return c, false, false, 0, "Invalid type: " + err.Error()
	}
	switch {
	case r.Model == "":
		return c, false, false, 0, "you must provide a model parameter"
	case len(r.Messages) == 0:
		return c, false, false, 0, "Invalid 'messages': empty array."
	case r.Options != nil && !r.Stream:
		return c, false, false, 0, "The 'stream_options' parameter is only allowed when 'stream' is enabled."
	}
	c.Tools = len(r.Tools) > 0
	open := map[string]bool{} // tool calls without an answer
	for i, m := range r.Messages {
		allowed, ok := parts[m.Role]
		if !ok {
			return c, false, false, 0, fmt.Sprintf("Invalid value: '%s' for messages[%d].role.", m.Role, i)
		}
		if m.Role != "tool" && len(open) > 0 {
			return c, false, false, 0, "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'."
		}
		if m.Role == "tool" {
			if !open[m.ToolCallID] {
				return c, false, false, 0, "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."
			}
			delete(open, m.ToolCallID)
		}
		text, err := contentText(m, strings.Fields(allowed))
		if err != "" {
			return c, false, false, 0, fmt.Sprintf("Invalid messages[%d].content: %s", i, err)
		}
		for _, call := range m.ToolCalls {
			open[call.ID] = true
		}
		c.Messages = append(c.Messages, Message{Role: m.Role, Text: text})
	}
	if len(open) > 0 {
		return c, false, false, 0, "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'."
	}
	n = 1
	if r.N != nil {
		n = *r.N
	}
	return c, r.Stream, r.Options != nil && r.Options.Usage, n, ""
}

// contentText checks a message's content and returns its text.
func contentText(m wireMessage, allowed []string) (text, wrong string) {
	if len(m.Content) == 0 || string(m.Content) == "null" {
		if m.Role == "assistant" && (len(m.ToolCalls) > 0 || m.Refusal != nil) {
			return "", ""
		}
		return "", "expected a string or an array, got null"
	}
	if json.Unmarshal(m.Content, &text) == nil {
		return text, ""
	}
	var list []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	if json.Unmarshal(m.Content, &list) != nil || len(list) == 0 {
		return "", "expected a string or a non-empty array of objects"
	}
	var texts []string
	for _, p := range list {
		if !slices.Contains(allowed, p.Type) {
			return "", fmt.Sprintf("part type '%s' is not allowed for role '%s'", p.Type, m.Role)
		}
		if p.Type == "text" {
			texts = append(texts, p.Text)
		}
	}
	return strings.Join(texts, "\n"), ""
}

func (p *Provider) chat(w http.ResponseWriter, r *http.Request, rec *Received, f Faults, answer func(Input) Reply) {
	c, stream, usage, n, wrong := readChat(rec.Body)
	if wrong != "" {
		refuse(w, rec, http.StatusBadRequest, wrong)
		return
	}
	reply := answer(c)
	if stream {
		streamChat(w, r, reply, n, usage, f)
		return
	}
	choices := make([]any, n)
	for i := range choices {
		m := map[string]any{"role": "assistant", "content": reply.Text, "refusal": nil}
		finish := "stop"
		if reply.Tool != "" {
			m["content"], m["tool_calls"], finish = nil, []any{toolCall(reply)}, "tool_calls"
		}
		choices[i] = map[string]any{"index": i, "message": m, "logprobs": nil, "finish_reason": finish}
	}
	writeJSON(w, http.StatusOK, map[string]any{
		"id": "chatcmpl-1", "object": "chat.completion", "created": 1700000000, "model": "stand-in", "choices": choices,
		"usage": map[string]any{"prompt_tokens": len(rec.Body) / 4, "completion_tokens": len(reply.Text) / 4, "total_tokens": (len(rec.Body) + len(reply.Text)) / 4,
			"prompt_tokens_details": map[string]any{"cached_tokens": reply.Cached}},
	})
}

func toolCall(r Reply) map[string]any {
	return map[string]any{"id": "call_1", "type": "function", "function": map[string]any{"name": r.Tool, "arguments": r.Arguments}}
}
