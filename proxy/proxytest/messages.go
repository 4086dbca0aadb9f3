package proxytest

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// messagesFields lists the allowed members of a Messages API request.
var messagesFields = strings.Fields(`model messages system max_tokens stream temperature top_p top_k stop_sequences tools
	tool_choice metadata thinking service_tier container mcp_servers context_management output_config betas cache_control speed diagnostics`)

// blockFields are the members that each type of block may have.
var blockFields = map[string]string{
	"text":              "type text cache_control citations",
	"image":             "type source cache_control",
	"document":          "type source cache_control title context citations",
	"tool_use":          "type id name input cache_control caller",
	"tool_result":       "type tool_use_id content is_error cache_control",
	"thinking":          "type thinking signature",
	"redacted_thinking": "type data",
	"search_result":     "type source title content cache_control citations",
}

// blocks are the types of blocks that each role may send.
var blocks = map[string]string{
	"user": "text image document tool_result search_result", "assistant": "text tool_use thinking redacted_thinking", "system": "text",
}

type block struct {
	Type, Text, ID, Signature string
	ToolUseID                 string          `json:"tool_use_id"`
	Cache                     json.RawMessage `json:"cache_control"`
}

type messagesRequest struct {
	Model    string
	System   json.RawMessage
	Messages []struct {
		Role    string
		Content json.RawMessage
	}
	MaxTokens *int `json:"max_tokens"`
	Stream    bool
	Tools     []json.RawMessage
}

// maxBreakpoints is how many cache_control members the API allows.
const maxBreakpoints = 4

// readMessages validates a request as the API does. wrong is the violation, or "". A
// thought is bound to the conversation before it.
func readMessages(body []byte, count bool) (c Input, r messagesRequest, wrong string) {
	if wrong = unknown(body, "", messagesFields); wrong != "" {
		return c, r, wrong
	}
	if err := json.Unmarshal(body, &r); err != nil {
		return c, r, "invalid type: " + err.Error()
	}
	c.Tools = len(r.Tools) > 0
	breakpoints := strings.Count(string(r.System), `"cache_control"`)
	for _, t := range r.Tools {
		breakpoints += strings.Count(string(t), `"cache_control"`)
	}
	switch {
	case r.Model == "":
		return c, r, "model: Field required"
	case r.MaxTokens == nil && !count:
		return c, r, "max_tokens: Field required"
	case len(r.Messages) == 0:
		return c, r, "messages: at least one message is required"
	case r.Messages[0].Role != "user":
		return c, r, "messages: first message must use the \"user\" role"
	}
	if len(r.System) > 0 {
		list, err := blocksOf(r.System)
		if err != "" {
			return c, r, "system: " + err
		}
		c.Messages = append(c.Messages, Message{Role: "system", Text: textOf(list)})
	}
	var open []string // calls that must be answered at once
	for i, m := range r.Messages {
		where := fmt.Sprintf("messages.%d: ", i)
		allowed, ok := blocks[m.Role]
		if !ok {
			return c, r, where + "unexpected role " + m.Role
		}
		list, err := blocksOf(m.Content)
		if err != "" && (m.Role != "system" || string(m.Content) != "[]") { // Claude Code sends an empty one after a summary
			return c, r, where + err
		}
		var results []string
		other := false
		for _, b := range list {
			if !slices.Contains(strings.Fields(allowed), b.Type) {
				return c, r, fmt.Sprintf("%sblocks of type %q are not allowed for role %q", where, b.Type, m.Role)
			}
			if len(b.Cache) > 0 {
				breakpoints++
			}
			switch b.Type {
			case "tool_result":
				if other {
					return c, r, where + "`tool_result` blocks must come first"
				}
				results = append(results, b.ToolUseID)
			case "thinking":
				if b.Signature != thoughtOf(c.Messages) {
					return c, r, where + "Invalid `signature` in `thinking` block. The block is bound to a different conversation"
				}
			default:
				other = true
			}
		}
		if m.Role != "system" {
			if wrong := answers(open, results); wrong != "" {
				return c, r, where + wrong
			}
			open = nil
		}
		for _, b := range list {
			if b.Type == "tool_use" {
				open = append(open, b.ID)
			}
		}
		role := m.Role
		if role == "user" && len(results) > 0 && !other {
			role = "tool"
		}
		c.Messages = append(c.Messages, Message{Role: role, Text: textOf(list)})
	}
	if breakpoints > maxBreakpoints {
		return c, r, fmt.Sprintf("A maximum of %d blocks with cache_control may be provided. Found %d.", maxBreakpoints, breakpoints)
	}
	return c, r, ""
}

// answers checks that the results answer all calls before them, and no others.
func answers(open, results []string) string {
	for _, id := range open {
		if !slices.Contains(results, id) {
			return "`tool_use` ids were found without `tool_result` blocks immediately after: " + id
		}
	}
	for _, id := range results {
		if !slices.Contains(open, id) {
			return "unexpected `tool_use_id` found in `tool_result` blocks: " + id
		}
	}
	return ""
}

// blocksOf reads a content, which may be a string.
func blocksOf(content json.RawMessage) (list []block, wrong string) {
	var text string
	if json.Unmarshal(content, &text) == nil {
		if text == "" {
			return nil, "content must not be empty"
		}
		return []block{{Type: "text", Text: text}}, ""
	}
	var raw []json.RawMessage
	if json.Unmarshal(content, &raw) != nil || len(raw) == 0 {
		return nil, "content must be a string or a non-empty list of blocks"
	}
	for _, r := range raw {
		var b block
		if err := json.Unmarshal(r, &b); err != nil {
			return nil, err.Error()
		}
		fields, ok := blockFields[b.Type]
		if !ok {
			return nil, fmt.Sprintf("Input tag %q does not match any of the expected tags", b.Type)
		}
		if wrong := unknown(r, "content.", strings.Fields(fields)); wrong != "" {
			return nil, wrong
		}
		if b.Type == "text" && strings.TrimSpace(b.Text) == "" {
			return nil, "text content blocks must be non-empty"
		}
		list = append(list, b)
	}
	return list, ""
}

func textOf(list []block) string {
	var texts []string
	for _, b := range list {
		if b.Text != "" {
			texts = append(texts, b.Text)
		}
	}
	return strings.Join(texts, "\n")
}

// thoughtOf signs a thought that follows a conversation.
func thoughtOf(before []Message) string {
	h := sha256.New()
	for _, m := range before {
		fmt.Fprintf(h, "%s\x00%s\x00", m.Role, m.Text)
	}
	return hex.EncodeToString(h.Sum(nil))
}

func (p *Provider) messages(w http.ResponseWriter, r *http.Request, rec *Received, f Faults, answer func(Input) Reply) {
	count := strings.HasSuffix(r.URL.Path, "/count_tokens")
	c, req, wrong := readMessages(rec.Body, count)
	if wrong == "" && r.Header.Get("anthropic-version") == "" {
		wrong = "anthropic-version: header is required"
	}
	if wrong != "" {
		rec.Refused = wrong
		writeJSON(w, http.StatusBadRequest, map[string]any{"type": "error", "error": map[string]any{"type": "invalid_request_error", "message": wrong}})
		return
	}
	if count {
		writeJSON(w, http.StatusOK, map[string]any{"input_tokens": tokens(c)})
		return
	}
	reply := answer(c)
	var content []map[string]any
	if reply.Thinks {
		content = append(content, map[string]any{"type": "thinking", "thinking": "Hm.", "signature": thoughtOf(c.Messages)})
	}
	reason := "end_turn"
	if reply.Tool != "" {
		reason = "tool_use"
		content = append(content, map[string]any{"type": "tool_use", "id": "toolu_1", "name": reply.Tool, "input": json.RawMessage(reply.Arguments)})
	} else {
		content = append(content, map[string]any{"type": "text", "text": reply.Text})
	}
	whole := map[string]any{"id": "msg_1", "type": "message", "role": "assistant", "model": "stand-in", "content": content,
		"stop_reason": reason, "stop_sequence": nil, "usage": map[string]any{"input_tokens": tokens(c), "output_tokens": 1}}
	if !req.Stream {
		writeJSON(w, http.StatusOK, whole)
		return
	}
	s := newStreamer(w, r, f)
	whole["content"], whole["stop_reason"] = []any{}, nil
	s.event("message_start", map[string]any{"message": whole})
	s.event("ping", map[string]any{})
	for i, b := range content {
		delta := func(fields map[string]any) {
			s.event("content_block_delta", map[string]any{"index": i, "delta": fields})
		}
		switch b["type"] {
		case "thinking":
			s.event("content_block_start", map[string]any{"index": i, "content_block": map[string]any{"type": "thinking", "thinking": "", "signature": ""}})
			delta(map[string]any{"type": "thinking_delta", "thinking": b["thinking"]})
			delta(map[string]any{"type": "signature_delta", "signature": b["signature"]})
		case "tool_use":
			s.event("content_block_start", map[string]any{"index": i, "content_block": map[string]any{"type": "tool_use", "id": b["id"], "name": b["name"], "input": map[string]any{}}})
			delta(map[string]any{"type": "input_json_delta", "partial_json": reply.Arguments})
		default:
			s.event("content_block_start", map[string]any{"index": i, "content_block": map[string]any{"type": "text", "text": ""}})
			for _, word := range strings.SplitAfter(reply.Text, " ") {
				delta(map[string]any{"type": "text_delta", "text": word})
			}
		}
		s.event("content_block_stop", map[string]any{"index": i})
	}
	s.event("message_delta", map[string]any{"delta": map[string]any{"stop_reason": reason, "stop_sequence": nil}, "usage": map[string]any{"output_tokens": 1}})
	s.event("message_stop", map[string]any{})
}
