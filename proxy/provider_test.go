package proxy

import "testing"

func TestChatBase(t *testing.T) {
	for path, want := range map[string]string{
		"/v1/chat/completions": "/v1",
		"/v1/responses":        "/v1",
		"/v1/messages":         "/v1",
		"/v1beta/models/gemini-pro:streamGenerateContent": "/v1beta/openai",
		"/v1/embeddings": "",
	} {
		if got, ok := chatBase(path); got != want || ok != (want != "") {
			t.Errorf("chatBase(%q) = %q, %v; want %q", path, got, ok, want)
		}
	}
}
