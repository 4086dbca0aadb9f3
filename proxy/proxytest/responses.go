package proxytest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// responseFields are the members that a request of the Responses API may have.
var responseFields = strings.Fields(`type generate stream_id model input instructions stream stream_options store previous_response_id conversation
	temperature top_p max_output_tokens max_tool_calls tools tool_choice parallel_tool_calls metadata user safety_identifier
	prompt_cache_key prompt_cache_retention service_tier reasoning text truncation include background client_metadata`)

// itemFields are the members that each type of item may have, besides the one that Codex adds
// to every item.
var itemFields = map[string]string{
	"message":                 "type role content id status phase",
	"function_call":           "type id call_id name arguments status namespace",
	"function_call_output":    "type id call_id output status",
	"custom_tool_call":        "type id call_id name input status",
	"custom_tool_call_output": "type id call_id output status",
	"reasoning":               "type id summary content encrypted_content status",
	"item_reference":          "type id",
	"compaction":              "type id encrypted_content",
	"compaction_trigger":      "type",
	"additional_tools":        "type id role tools",
}

// responseParts are the types of parts that each role may send.
var responseParts = map[string]string{
	"user": "input_text input_image input_file input_audio", "system": "input_text", "developer": "input_text",
	"assistant": "output_text refusal",
}

type responseItem struct {
	Type      string
	Role      string
	Content   json.RawMessage
	CallID    string `json:"call_id"`
	Output    json.RawMessage
	Summary   json.RawMessage
	Encrypted string `json:"encrypted_content"`
}

type responseRequest struct {
	Model        string
	Input        json.RawMessage
	Instructions *string
	Stream       bool
	Store        *bool
	Previous     string `json:"previous_response_id"`
	Conversation any
	Tools        []any
	Generate     *bool
	Type         string
	Lane         *string `json:"stream_id"`
}

// readResponses validates a request as the API does. wrong is the violation, or "". before
// returns the conversation of previous_response_id.
func readResponses(body []byte, before func(id string) ([]Message, bool)) (c Input, r responseRequest, wrong string) {
	if wrong = unknown(body, "", responseFields); wrong != "" {
		return c, r, wrong
	}
	if err := json.Unmarshal(body, &r); err != nil {
		return c, r, "Invalid type: " + err.Error()
	}
	c.Tools = len(r.Tools) > 0
	switch {
	case r.Model == "":
		return c, r, "Missing required parameter: 'model'."
	case r.Previous != "" && r.Conversation != nil:
		return c, r, "Mutually exclusive parameters: 'previous_response_id' and 'conversation'."
	case r.Instructions != nil:
		c.Messages = append(c.Messages, Message{Role: "system", Text: *r.Instructions})
	}
	open := map[string]bool{} // calls without their output
	if r.Previous != "" {
		history, ok := before(r.Previous)
		if !ok {
			return c, r, "Previous response with id '" + r.Previous + "' not found."
		}
		for _, m := range history {
			if m.Role == "call" {
				open[m.Text] = true
				continue
			}
			c.Messages = append(c.Messages, m)
		}
	}
	var text string
	if json.Unmarshal(r.Input, &text) == nil {
		c.Messages = append(c.Messages, Message{Role: "user", Text: text})
		return c, r, ""
	}
	var items []json.RawMessage
	if json.Unmarshal(r.Input, &items) != nil || len(items) == 0 {
		return c, r, "Invalid type for 'input': expected a string or a non-empty array."
	}
	for i, raw := range items {
		where := fmt.Sprintf("input[%d].", i)
		var it responseItem
		if err := json.Unmarshal(raw, &it); err != nil {
			return c, r, "Invalid type: " + where + err.Error()
		}
		if it.Type == "" && it.Role != "" {
			it.Type = "message"
		}
		allowed, ok := itemFields[it.Type]
		if !ok {
			return c, r, fmt.Sprintf("Invalid value: '%s' for %stype.", it.Type, where)
		}
		if wrong := unknown(raw, where, strings.Fields(allowed+" internal_chat_message_metadata_passthrough")); wrong != "" {
			return c, r, wrong
		}
		switch it.Type {
		case "message":
			m, wrong := it.message()
			if wrong != "" {
				return c, r, "Invalid " + where + wrong
			}
			c.Messages = append(c.Messages, m)
		case "additional_tools":
			c.Tools = true
		case "function_call", "custom_tool_call":
			open[it.CallID] = true
		case "function_call_output", "custom_tool_call_output":
			if !open[it.CallID] {
				return c, r, "No tool call found for function call output with call_id " + it.CallID + "."
			}
			delete(open, it.CallID)
			c.Messages = append(c.Messages, Message{Role: "tool", Text: string(it.Output)})
		case "reasoning":
			if s := thoughtOf(c.Messages); it.Encrypted != "" && it.Encrypted != s {
				return c, r, "prefix_mismatch: the reasoning item is bound to a different conversation"
			}
		}
	}
	for id := range open {
		return c, r, "No tool output found for function call " + id + "."
	}
	return c, r, ""
}

// message checks a message and joins its text parts.
func (it *responseItem) message() (m Message, wrong string) {
	m.Role = it.Role
	allowed, ok := responseParts[it.Role]
	if !ok {
		return m, fmt.Sprintf("role: '%s'", it.Role)
	}
	if json.Unmarshal(it.Content, &m.Text) == nil {
		return m, ""
	}
	var list []struct{ Type, Text string }
	if json.Unmarshal(it.Content, &list) != nil || len(list) == 0 {
		return m, "content: expected a string or a non-empty array"
	}
	var texts []string
	for _, p := range list {
		if !slices.Contains(strings.Fields(allowed), p.Type) {
			return m, fmt.Sprintf("content: part type '%s' is not allowed for role '%s'", p.Type, it.Role)
		}
		if p.Text != "" {
			texts = append(texts, p.Text)
		}
	}
	m.Text = strings.Join(texts, "\n")
	return m, ""
}

func (p *Provider) responses(w http.ResponseWriter, r *http.Request, rec *Received, f Faults, answer func(Input) Reply) {
	c, req, wrong := readResponses(rec.Body, p.conversation)
	if wrong != "" {
		refuse(w, rec, http.StatusBadRequest, wrong)
		return
	}
	if strings.HasSuffix(r.URL.Path, "/input_tokens") {
		writeJSON(w, http.StatusOK, map[string]any{"object": "response.input_tokens", "input_tokens": tokens(c)})
		return
	}
	whole := p.respond(c, answer(c), req.Store == nil || *req.Store)
	if !req.Stream {
		writeJSON(w, http.StatusOK, whole)
		return
	}
	whole.stream(newStreamer(w, r, f).event)
}

// response is an answer of the API.
type response map[string]any

// respond makes an answer; keep allows later requests to refer to it.
func (p *Provider) respond(c Input, reply Reply, keep bool) response {
	id := p.store(c, reply, keep)
	var output []any
	if reply.Thinks {
		output = append(output, map[string]any{"type": "reasoning", "id": "rs_1", "summary": []any{}, "encrypted_content": thoughtOf(c.Messages)})
	}
	if reply.Tool != "" {
		call := map[string]any{"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": reply.Tool, "arguments": reply.Arguments, "status": "completed"}
		if space, name, ok := strings.Cut(reply.Tool, "/"); ok {
			call["namespace"], call["name"] = space, name
		}
		output = append(output, call)
	} else {
		output = append(output, map[string]any{"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
			"content": []any{map[string]any{"type": "output_text", "text": reply.Text, "annotations": []any{}}}})
	}
	return response{"id": id, "object": "response", "created_at": 1700000000, "status": "completed", "model": "stand-in", "output": output,
		"error": nil, "incomplete_details": nil, "instructions": nil, "metadata": map[string]any{}, "parallel_tool_calls": true,
		"temperature": 1, "tool_choice": "auto", "tools": []any{}, "top_p": 1,
		"usage": map[string]any{"input_tokens": tokens(c), "input_tokens_details": map[string]any{"cached_tokens": reply.Cached},
			"output_tokens": 1, "output_tokens_details": map[string]any{"reasoning_tokens": 0}, "total_tokens": tokens(c) + 1}}
}

// stream sends the events of an answer.
func (whole response) stream(send func(kind string, fields map[string]any)) {
	n := 0
	event := func(kind string, fields map[string]any) {
		fields["sequence_number"] = n
		n++
		send(kind, fields)
	}
	begun := map[string]any{}
	for k, v := range whole {
		begun[k] = v
	}
	begun["status"], begun["output"], begun["usage"] = "in_progress", []any{}, nil
	event("response.created", map[string]any{"response": begun})
	event("response.in_progress", map[string]any{"response": begun})
	for i, item := range whole["output"].([]any) { //nolint:forcetypeassert // respond made it
		it := item.(map[string]any)
		at := func(fields map[string]any) map[string]any {
			fields["item_id"], fields["output_index"] = it["id"], i
			return fields
		}
		switch it["type"] {
		case "message":
			empty := map[string]any{"type": "message", "id": "msg_1", "role": "assistant", "status": "in_progress", "content": []any{}}
			part := it["content"].([]any)[0].(map[string]any)
			text := part["text"].(string)
			event("response.output_item.added", map[string]any{"output_index": i, "item": empty})
			event("response.content_part.added", at(map[string]any{"content_index": 0, "part": map[string]any{"type": "output_text", "text": "", "annotations": []any{}}}))
			for _, word := range strings.SplitAfter(text, " ") {
				event("response.output_text.delta", at(map[string]any{"content_index": 0, "delta": word, "logprobs": []any{}}))
			}
			event("response.output_text.done", at(map[string]any{"content_index": 0, "text": text, "logprobs": []any{}}))
			event("response.content_part.done", at(map[string]any{"content_index": 0, "part": part}))
		case "reasoning":
			event("response.output_item.added", map[string]any{"output_index": i, "item": map[string]any{"type": "reasoning", "id": "rs_1", "summary": []any{}}})
		case "function_call":
			event("response.output_item.added", map[string]any{"output_index": i, "item": map[string]any{"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": it["name"], "arguments": "", "status": "in_progress"}})
			event("response.function_call_arguments.delta", at(map[string]any{"delta": it["arguments"]}))
			event("response.function_call_arguments.done", at(map[string]any{"arguments": it["arguments"], "name": it["name"]}))
		}
		event("response.output_item.done", map[string]any{"output_index": i, "item": item})
	}
	event("response.completed", map[string]any{"response": whole})
}

// store keeps a conversation with its answer, and gives the answer an id.
func (p *Provider) store(c Input, reply Reply, keep bool) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answers++
	id := fmt.Sprintf("resp_%d", p.answers)
	if !keep {
		return id
	}
	if p.stored == nil {
		p.stored = make(map[string][]Message)
	}
	messages := slices.Clone(c.Messages)
	if reply.Tool != "" {
		messages = append(messages, Message{Role: "call", Text: "call_1"})
	} else {
		messages = append(messages, Message{Role: "assistant", Text: reply.Text})
	}
	p.stored[id] = messages
	return id
}

func (p *Provider) conversation(id string) ([]Message, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	m, ok := p.stored[id]
	return m, ok
}

// tokens returns about how many tokens a conversation has.
func tokens(c Input) int {
	n := 0
	for _, m := range c.Messages {
		n += 1 + len(m.Text)/4
	}
	return n
}
