package cli

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestRun checks that RunTrial asks each upstream with a key once for its models, and that the
// error of a refused key names its variable and not the key.
func TestRun(t *testing.T) {
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		switch {
		case r.Header.Get("X-Api-Key") != "":
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = io.WriteString(w, `{"error":{"message":"invalid key sk-ant"}}`)
		case r.Header.Get("Authorization") != "Bearer sk-open" || r.Method != http.MethodGet:
			t.Errorf("%s with the key %q", r.Method, r.Header.Get("Authorization"))
		default:
			_, _ = io.WriteString(w, `{"data":[{"id":"gpt-9"},{"id":"gpt-9-mini"}]}`)
		}
	}))
	defer server.Close()
	keys := map[string]string{"OPENAI_API_KEY": "sk-open", "ANTHROPIC_API_KEY": "sk-ant"}
	all := RunTrial(t.Context(), TrialOptions{Base: server.URL, Client: server.Client(), Key: func(name string) string { return keys[name] }})
	if len(all) != 3 || asked != 2 || all[0].Models != 2 || all[0].Status != http.StatusOK || all[0].Error != "" || !all[2].NoKey {
		t.Errorf("after %d requests got %+v, want 2 models, an error, and one without a key", asked, all)
	}
	if e := all[1].Error; !strings.Contains(e, "401") || !strings.Contains(e, "refuses the key in ANTHROPIC_API_KEY") || strings.Contains(e, "sk-ant") {
		t.Errorf("got %s, want \"401\" in it, \"refuses the key in ANTHROPIC_API_KEY\" in it, no \"sk-ant\" in it", e)
	}
	var out bytes.Buffer
	PrintTrial(&out, all)
	for _, want := range []string{"✓ openai", "2 models in", "✗ anthropic", "- gemini", "GEMINI_API_KEY or GOOGLE_API_KEY is not set"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in %s", want, out.String())
		}
	}
}

// TestTrialWithoutProxy checks that RunTrial reports a proxy that does not answer.
func TestTrialWithoutProxy(t *testing.T) {
	all := RunTrial(t.Context(), TrialOptions{Base: "http://127.0.0.1:1", Client: http.DefaultClient, Key: func(string) string { return "k" }})
	if !strings.HasPrefix(all[0].Error, "the proxy does not answer") {
		t.Errorf("got %+v, want \"the proxy does not answer\" at its beginning", all)
	}
}
