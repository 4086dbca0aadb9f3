package cli

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestOllamaModel(t *testing.T) {
	for answer, want := range map[string]string{
		`{"models":[{"name":"qwen3:8b"},{"name":"other"}]}`: "qwen3:8b",
		`{"models":[]}`: "",
		`not Ollama`:    "",
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/api/tags" {
				t.Errorf("path %s, want /api/tags", r.URL.Path)
			}
			io.WriteString(w, answer)
		}))
		if got := ollamaModel(context.Background(), s.URL); got != want {
			t.Errorf("answer %s: got model %q, want %q", answer, got, want)
		}
		s.Close()
		if got := ollamaModel(context.Background(), s.URL); got != "" {
			t.Errorf("without a server: got model %q, want none", got)
		}
	}
}
