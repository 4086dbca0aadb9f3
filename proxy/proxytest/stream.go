package proxytest

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"
)

// streamChat writes a reply as the API streams it.
func streamChat(w http.ResponseWriter, r *http.Request, reply Reply, n int, usage bool, f Faults) {
	s := newStreamer(w, r, f)
	s.usage = usage
	for i := range n {
		s.delta(i, map[string]any{"role": "assistant", "content": "", "refusal": nil}, nil)
	}
	if reply.Tool != "" {
		call := toolCall(reply)
		call["index"] = 0
		s.delta(0, map[string]any{"tool_calls": []any{call}}, nil)
		s.delta(0, map[string]any{}, "tool_calls")
	} else {
		for _, word := range strings.SplitAfter(reply.Text, " ") {
			for i := range n {
				s.delta(i, map[string]any{"content": word}, nil)
			}
		}
		for i := range n {
			s.delta(i, map[string]any{}, "stop")
		}
	}
	if usage {
		s.chunk(map[string]any{"choices": []any{}, "usage": map[string]any{"prompt_tokens": r.ContentLength / 4, "completion_tokens": len(reply.Text) / 4, "total_tokens": (r.ContentLength + int64(len(reply.Text))) / 4}})
	}
	if !f.NoDone {
		s.write("data: [DONE]")
	}
}

func newStreamer(w http.ResponseWriter, r *http.Request, f Faults) *streamer {
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	w.WriteHeader(http.StatusOK)
	return &streamer{w: w, r: r, f: f, failure: openAIFailure}
}

// openAIFailure is an error within a stream in the format of OpenAI and Anthropic.
const openAIFailure = `data: {"type":"error","error":{"message":"a fault was asked for","type":"server_error","param":null,"code":null}}`

type streamer struct {
	w     http.ResponseWriter
	r     *http.Request
	f     Faults
	usage bool
	sent  int

	failure string // sent for Faults.FailAfter
	plain   bool   // send raw pieces instead of events
}

func (s *streamer) delta(i int, delta map[string]any, finish any) {
	s.chunk(map[string]any{"choices": []any{map[string]any{"index": i, "delta": delta, "logprobs": nil, "finish_reason": finish}}})
}

func (s *streamer) chunk(c map[string]any) {
	c["id"], c["object"], c["created"], c["model"] = "chatcmpl-1", "chat.completion.chunk", 1700000000, "stand-in"
	if _, ok := c["usage"]; !ok && s.usage {
		c["usage"] = nil
	}
	b, _ := json.Marshal(c) // plain values: cannot fail
	s.step("data: " + string(b))
}

// event sends an event with its type in two places, as the newer APIs do.
func (s *streamer) event(kind string, fields map[string]any) {
	fields["type"] = kind
	b, _ := json.Marshal(fields) // plain values: cannot fail
	s.step("event: " + kind + "\ndata: " + string(b))
}

// step sends an event, or triggers a fault that is due.
func (s *streamer) step(event string) {
	if s.f.CutAfter > 0 && s.sent == s.f.CutAfter {
		panic(http.ErrAbortHandler) // breaks the connection in mid-stream
	}
	if s.f.FailAfter > 0 && s.sent == s.f.FailAfter {
		s.sent++
		s.write(s.failure)
		panic(http.ErrAbortHandler)
	}
	select {
	case <-time.After(s.f.Pause):
	case <-s.r.Context().Done():
		panic(http.ErrAbortHandler)
	}
	s.write(event)
	s.sent++
}

// write sends one event, or a piece of an array.
func (s *streamer) write(event string) {
	if !s.plain {
		event += "\n\n"
	}
	if s.f.Comments && !s.plain {
		event = strings.ReplaceAll(": keep-alive\n\n"+event, "\n", "\r\n")
	}
	size := len(event)
	if s.f.SliceBytes > 0 {
		size = s.f.SliceBytes
	}
	for len(event) > 0 {
		n := min(size, len(event))
		_, _ = s.w.Write([]byte(event[:n]))
		event = event[n:]
		if fl, ok := s.w.(http.Flusher); ok {
			fl.Flush()
		}
	}
}
