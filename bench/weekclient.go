package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// spoken is a message of a conversation.
type spoken struct{ role, text string }

// weekRequest is a request of one of the clients that people use.
type weekRequest struct {
	path   string
	header map[string]string
	body   map[string]any
}

// weekClients are the clients of conversations in projects, in their forms of 2026. Outside of
// projects, a program calls the API.
var weekClients = []func(said []spoken, folder, id string) weekRequest{claudeCode, openCode, codexCLI}

type object = map[string]any

func claudeCode(said []spoken, folder, id string) weekRequest {
	var messages []object
	for i, s := range said {
		content := []object{{"type": "text", "text": s.text}}
		if i == 0 {
			content = append([]object{{"type": "text", "text": "<system-reminder>\nCurrent branch: main\n</system-reminder>"}}, content...)
		}
		messages = append(messages, object{"role": s.role, "content": content})
	}
	system := []object{
		{"type": "text", "text": "You are Claude Code, Anthropic's official CLI for Claude."},
		{"type": "text", "text": "# Environment\nYou have been invoked in the following environment: \n - Primary working directory: " + folder + "\n - Is a git repository: true\n"},
	}
	return weekRequest{"/v1/messages", map[string]string{
		"x-api-key": "sk-ant-me", "User-Agent": "claude-cli/2.1.329 (external, cli)", "Anthropic-Version": "2023-06-01", "X-Claude-Code-Session-Id": id,
	}, object{
		"model": "claude-sonnet-4-5", "max_tokens": 64000, "system": system, "messages": messages,
		"tools": []object{{"name": "Bash", "input_schema": object{"type": "object"}}},
	}}
}

func chatMessages(said []spoken) (list []object) {
	for _, s := range said {
		list = append(list, object{"role": s.role, "content": s.text})
	}
	return list
}

func openCode(said []spoken, folder, id string) weekRequest {
	system := spoken{"system", "You are opencode, an interactive CLI tool.\n<env>\n  Working directory: " + folder + "\n  Workspace root folder: " + folder + "\n  Is directory a git repo: yes\n</env>"}
	return weekRequest{
		"/v1/chat/completions", map[string]string{"Authorization": "Bearer sk-me", "User-Agent": "opencode/1.18.33", "x-session-id": "ses_" + id},
		object{
			"model": "gpt-5.1", "messages": chatMessages(append([]spoken{system}, said...)),
			"tools": []object{{"type": "function", "function": object{"name": "bash", "parameters": object{"type": "object"}}}},
		},
	}
}

func codexCLI(said []spoken, folder, id string) weekRequest {
	item := func(role, text string) object {
		kind := "input_text"
		if role == "assistant" {
			kind = "output_text"
		}
		return object{"type": "message", "role": role, "content": []object{{"type": kind, "text": text}}}
	}
	input := []object{item("developer", "You are a coding agent."), item("user", "<environment_context>\n  <cwd>"+folder+"</cwd>\n  <shell>bash</shell>\n</environment_context>")}
	for _, s := range said {
		input = append(input, item(s.role, s.text))
	}
	return weekRequest{"/v1/responses", map[string]string{
		"Authorization": "Bearer sk-me", "User-Agent": "codex_cli_rs/0.169.0", "originator": "codex_cli_rs", "session-id": id,
	}, object{
		"model": "gpt-5.1-codex", "instructions": "You are Codex", "store": false, "input": input,
		"tools": []object{{"type": "function", "name": "shell", "parameters": object{"type": "object"}}},
	}}
}

func program(said []spoken, _, _ string) weekRequest {
	return weekRequest{"/v1/chat/completions", map[string]string{"Authorization": "Bearer sk-me"}, object{"model": "gpt-5-mini", "messages": chatMessages(said)}}
}

// asChat rewrites a request for programs that know Chat Completions only.
func (r weekRequest) asChat() weekRequest {
	var list []object
	for _, s := range textsOf(mustJSON(r.body)) {
		role := s.role
		if role == "developer" {
			role = "system"
		}
		list = append(list, object{"role": role, "content": s.text})
	}
	return weekRequest{"/v1/chat/completions", map[string]string{"Authorization": "Bearer sk-me"}, object{"model": "openai/m", "messages": list}}
}

func mustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // maps of strings
	}
	return b
}

// textsOf returns the texts of a request of any of the three APIs, in their order.
func textsOf(body []byte) (list []spoken) {
	var r struct {
		System, Instructions json.RawMessage
		Messages, Input      json.RawMessage
	}
	if json.Unmarshal(body, &r) != nil {
		return nil
	}
	add := func(role string, content json.RawMessage) {
		var text string
		var parts []struct{ Text string }
		switch {
		case json.Unmarshal(content, &text) == nil && text != "":
			list = append(list, spoken{role, text})
		case json.Unmarshal(content, &parts) == nil:
			for _, p := range parts {
				if p.Text != "" {
					list = append(list, spoken{role, p.Text})
				}
			}
		}
	}
	add("system", r.System)
	add("system", r.Instructions)
	var text string
	if json.Unmarshal(r.Input, &text) == nil {
		return append(list, spoken{"user", text})
	}
	for _, raw := range []json.RawMessage{r.Messages, r.Input} {
		var messages []struct {
			Role    string
			Content json.RawMessage
		}
		if json.Unmarshal(raw, &messages) == nil {
			for _, m := range messages {
				add(m.Role, m.Content)
			}
		}
	}
	return list
}

// added returns the lines of a request that its client did not send.
func added(client, upstream []byte, split func(string) []string) (lines []string) {
	var own []string
	for _, s := range textsOf(client) {
		own = append(own, s.text)
	}
	slices.SortFunc(own, func(a, b string) int { return len(b) - len(a) })
	for _, s := range textsOf(upstream) {
		text := s.text
		if slices.Contains(own, text) {
			continue
		}
		for _, o := range own { // the longest first
			if rest, ok := strings.CutSuffix(text, o); ok {
				text = rest
			} else if rest, ok := strings.CutPrefix(text, o); ok {
				text = rest
			} else if len(o) > 40 {
				text = strings.Replace(text, o, "\n", 1)
			}
		}
		lines = append(lines, split(text)...)
	}
	return lines
}

// answerOf returns an answer in the form of an API.
func answerOf(path, text string) string {
	t := string(mustJSON(text))
	switch {
	case strings.HasSuffix(path, "/messages"):
		return fmt.Sprintf(`{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":%s}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":9,"output_tokens":9}}`, t)
	case strings.HasSuffix(path, "/responses"):
		return fmt.Sprintf(`{"id":"resp_1","object":"response","created_at":1,"status":"completed","model":"m","output":[{"type":"message","id":"msg_1","status":"completed","role":"assistant","content":[{"type":"output_text","text":%s,"annotations":[]}]}],"usage":{"input_tokens":9,"output_tokens":9,"total_tokens":18}}`, t)
	}
	return fmt.Sprintf(`{"id":"c1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":%s}}],"usage":{"prompt_tokens":9,"completion_tokens":9,"total_tokens":18}}`, t)
}
