package cli

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestRun checks that RunTrial asks each upstream with a key once for its models and once
// for an answer, and that the error of a refused key names its variable and not the key.
func TestRun(t *testing.T) {
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		asked = append(asked, r.Method+" "+r.URL.Path+" "+string(body))
		switch {
		case r.Header.Get("X-Graphiti-Memory") != "off":
			t.Error("it would be kept")
		case r.Header.Get("X-Api-Key") != "":
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = io.WriteString(w, `{"error":{"message":"invalid key sk-ant"}}`)
		case r.Header.Get("Authorization") != "Bearer sk-open":
			t.Errorf("the key is %q", r.Header.Get("Authorization"))
		case r.Method == http.MethodGet:
			_, _ = io.WriteString(w, `{"data":[{"id":"text-embedding-3-small"},{"id":"gpt-9"},{"id":"gpt-9-mini"}]}`)
		default:
			w.Header().Set("X-Graphiti-Memory", "off; facts=0")
			_, _ = io.WriteString(w, `{"choices":[{"message":{"content":" OK\n"}}]}`)
		}
	}))
	defer server.Close()
	keys := map[string]string{"OPENAI_API_KEY": "sk-open", "ANTHROPIC_API_KEY": "sk-ant"}
	all := RunTrial(t.Context(), TrialOptions{Base: server.URL, Client: server.Client(), Key: func(name string) string { return keys[name] }})
	if len(all) != 3 || all[0].Model != "gpt-9-mini" || all[0].Answer != "OK" || all[0].Error != "" || all[0].Memory != "off; facts=0" {
		t.Errorf("got %+v, want 3 of them, Model \"gpt-9-mini\", Answer \"OK\", Error \"\", Memory \"off; facts=0\"", all)
	}
	if e := all[1].Error; !strings.Contains(e, "401") || !strings.Contains(e, "refuses the key in ANTHROPIC_API_KEY") || strings.Contains(e, "sk-ant") {
		t.Errorf("got %s, want \"401\" in it, \"refuses the key in ANTHROPIC_API_KEY\" in it, no \"sk-ant\" in it", e)
	}
	if !all[2].NoKey {
		t.Errorf("got %+v, want NoKey true", all[2])
	}
	if len(asked) != 3 || !strings.HasPrefix(asked[1], "POST /v1/chat/completions ") || !strings.Contains(asked[1], `"gpt-9-mini"`) {
		t.Errorf("got %q, want 3 of them, \"POST /v1/chat/completions \" at its beginning, \"\"gpt-9-mini\"\" in it", asked)
	}
	var out bytes.Buffer
	PrintTrial(&out, all)
	for _, want := range []string{"✓ openai", "gpt-9-mini answered in", "✗ anthropic", "- gemini", "GEMINI_API_KEY or GOOGLE_API_KEY is not set"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in %s", want, out.String())
		}
	}
}

// TestTrialWithoutProxy checks that RunTrial reports a proxy that does not answer, also if the
// caller chooses the model.
func TestTrialWithoutProxy(t *testing.T) {
	all := RunTrial(t.Context(), TrialOptions{Base: "http://127.0.0.1:1", Client: http.DefaultClient, Only: "gemini", Model: "m", Key: func(string) string { return "k" }})
	if len(all) != 1 || !strings.HasPrefix(all[0].Error, "the proxy does not answer") {
		t.Errorf("got %+v, want 1 of them, \"the proxy does not answer\" at its beginning", all)
	}
}
