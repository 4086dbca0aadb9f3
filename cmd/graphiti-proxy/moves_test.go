package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/proxy/proxytest"
)

// codexAt returns the message in which Codex reports its directory, before the person's
// first message.
func codexAt(dir string) m {
	return m{"type": "message", "role": "user", "content": []m{{"type": "input_text", "text": "<environment_context>\n  <cwd>" + dir + "</cwd>\n  <shell>bash</shell>\n</environment_context>"}}}
}

func codexSays(text string) m {
	return m{"type": "message", "role": "user", "content": []m{{"type": "input_text", "text": text}}}
}

func codexHears(text string) m {
	return m{"type": "message", "role": "assistant", "content": []m{{"type": "output_text", "text": text}}}
}

// codex sends a request as Codex does, and returns the user texts that the model received
// and the X-Graphiti-Memory header.
func (w *world) codex(session string, input ...m) (saw []string, header string) {
	w.t.Helper()
	w.model.Forget()
	headers := []string{"User-Agent", "codex_exec/0.169.0 (Debian 12.0.0; x86_64)", "Originator", "codex_exec"}
	if session != "" {
		headers = append(headers, "Session-Id", session)
	}
	all := append([]m{{"type": "message", "role": "developer", "content": "You are a coding agent running in the Codex CLI."}}, input...)
	_, h := w.exchange("/v1/responses", m{"model": "m", "store": false, "input": all}, headers...)
	return asked(w.t, w.model.Requests()[0].Body), h.Get("X-Graphiti-Memory")
}

// asked returns the user texts of a request of the Responses API, without the report of the
// directory.
func asked(t *testing.T, body []byte) (texts []string) {
	t.Helper()
	var r struct {
		Input []struct {
			Role    string
			Content json.RawMessage
		}
	}
	must(t, json.Unmarshal(body, &r))
	for _, item := range r.Input {
		var parts []struct{ Text string }
		var all string
		if item.Role != "user" {
			continue
		}
		if json.Unmarshal(item.Content, &all) != nil && json.Unmarshal(item.Content, &parts) == nil {
			for _, p := range parts {
				all += p.Text
			}
		}
		if !strings.Contains(all, "<cwd>") {
			texts = append(texts, all)
		}
	}
	return texts
}

// TestConversationMoves checks a conversation of Codex that changes its directory. Blocks
// of the first project stay before their messages, byte for byte, and later turns recall
// facts of the second project and are stored for it.
func TestConversationMoves(t *testing.T) {
	t.Parallel()
	for name, session := range map[string]string{"a session": "01a1fb72-d43b-7710-b778-d63b3585d1dc", "no session": ""} {
		t.Run(name, func(t *testing.T) {
			w, one, other := projects(t, nil)
			w.see(qwen(other, user("Our staging database is called Marlin.")))
			w.delivered(2)
			const noted = "I have noted it."
			w.model.SetAnswer(func(proxytest.Input) proxytest.Reply { return proxytest.Reply{Text: noted} })
			opening := []m{codexAt(one), codexSays(asks)}
			first, header := w.codex(session, opening...)
			if !strings.Contains(first[0], "Bluefin") || strings.Contains(first[0], "Marlin") {
				t.Fatalf("got %q, %s, want \"Bluefin\" in it, no \"Marlin\" in it", first, header)
			}
			w.delivered(3)
			moved := append(opening, codexHears(noted), codexAt(other), codexSays("Again: "+asks))
			second, header := w.codex(session, moved...)
			if second[0] != first[0] {
				t.Errorf("the first message became %q, %s", second[0], header)
			}
			if !strings.Contains(second[1], "Marlin") || strings.Contains(second[1], "Bluefin") {
				t.Errorf("after the move: %q, %s", second[1], header)
			}
			w.delivered(4)
			third, header := w.codex(session, append(moved, codexHears(noted), codexSays("Thanks. The port is 6543."))...)
			if third[0] != first[0] || third[1] != second[1] {
				t.Errorf("later: %q, %s", third, header)
			}
			w.delivered(5)
			if kept := w.keptFor(one); strings.Contains(kept, "6543") || strings.Contains(kept, "Again") {
				t.Errorf("kept for the one: %q", kept)
			}
			if kept := w.keptFor(other); !strings.Contains(kept, "6543") || !strings.Contains(kept, "Again") {
				t.Errorf("kept for the other: %q", kept)
			}
			// The same first message in the other directory begins another conversation.
			if saw, header := w.codex(session, codexAt(other), codexSays(asks)); strings.Contains(saw[0], "Bluefin") {
				t.Errorf("begun elsewhere: %q, %s", saw, header)
			}
		})
	}
}

// TestConnectionHoldsThePlace checks requests over a WebSocket, which contain new messages
// only: a request without a directory continues in the project of the conversation that it
// names, and a request with another directory does not.
func TestConnectionHoldsThePlace(t *testing.T) {
	t.Parallel()
	w, one, other := projects(t, map[string]string{"websocket": "intercept"})
	s := w.socket()
	fields := func(previous string, input ...m) m {
		f := m{"input": input, "client_metadata": m{"x-codex-turn-metadata": "{}"}}
		if previous != "" {
			f["previous_response_id"] = previous
		}
		return f
	}
	saw := func() string {
		r := w.model.Requests()
		return strings.Join(asked(t, r[len(r)-1].Body), "\n")
	}
	id, _, _ := s.create(fields("", codexAt(one), codexSays("Hello there.")))
	w.delivered(2)
	next, _, _ := s.create(fields(id, codexSays(asks)))
	if !strings.Contains(saw(), "Bluefin") {
		t.Errorf("goes on: %q", saw())
	}
	w.delivered(3)
	s.create(fields(next, codexAt(other), codexSays("Again: "+asks)))
	if text := saw(); strings.Contains(text[strings.Index(text, "Again"):], "Bluefin") || strings.Contains(text, "<graphiti_memory>") {
		t.Errorf("goes on elsewhere: %q", text)
	}
	s.create(fields("", codexAt(other), codexSays(asks)))
	// The model's last answer quotes the fact, and may already be stored for the other
	// project.
	if strings.Contains(strings.ReplaceAll(saw(), "You told me: Our staging database is called Bluefin", ""), "Bluefin") {
		t.Errorf("begins elsewhere: %q", saw())
	}
}
