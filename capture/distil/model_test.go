package distil

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

func serve(t *testing.T, h http.HandlerFunc) *Endpoint {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	e := NewEndpoint(s.URL+"/v1/", "m1", func() string { return "k1" })
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	return e
}

const answered1 = `{"choices":[{"message":{"content":"{\"facts\":[]}"}}],"usage":{"total_tokens":7}}`

func TestEndpoint_Request(t *testing.T) {
	var got struct {
		Model    string
		Stream   bool
		Messages []struct{ Role, Content string }
		Format   struct{ Type string } `json:"response_format"`
	}
	e := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/chat/completions" || r.Header.Get("Authorization") != "Bearer k1" {
			t.Errorf("request to %s with %q, want /v1/chat/completions with the key", r.URL.Path, r.Header.Get("Authorization"))
		}
		if err := json.NewDecoder(r.Body).Decode(&got); err != nil {
			t.Error(err)
		}
		io.WriteString(w, answered1)
	})
	answer, tokens, err := e.Ask(context.Background(), nil, "sys", "ask")
	if answer != `{"facts":[]}` || tokens != 7 || err != nil {
		t.Errorf("Ask = %q, %d, %v; want the content and 7 tokens", answer, tokens, err)
	}
	if got.Model != "m1" || got.Stream || got.Format.Type != "json_schema" || len(got.Messages) != 2 || got.Messages[1].Role != "user" || got.Messages[1].Content != "ask" {
		t.Errorf("sent %+v", got)
	}
}

func TestEndpoint_WithoutSchemas(t *testing.T) {
	calls := 0
	e := serve(t, func(w http.ResponseWriter, r *http.Request) {
		calls++
		body, _ := io.ReadAll(r.Body)
		if strings.Contains(string(body), "response_format") {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		io.WriteString(w, answered1)
	})
	for range 2 {
		if _, _, err := e.Ask(context.Background(), nil, "sys", "ask"); err != nil {
			t.Errorf("Ask: %v, want an answer without a schema", err)
		}
	}
	if calls != 3 {
		t.Errorf("got %d calls, want 3: the rejection is remembered", calls)
	}
}

func TestEndpoint_Faults(t *testing.T) {
	endless := func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, `{"choices":[{"message":{"content":"`)
		for r.Context().Err() == nil {
			if _, err := io.WriteString(w, strings.Repeat("secret ", 1000)); err != nil {
				return
			}
		}
	}
	for name, h := range map[string]http.HandlerFunc{
		"garbage":    func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "secret garbage") },
		"no choices": func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, `{"choices":[]}`) },
		"a refusal":  func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "secret", http.StatusTooManyRequests) },
		"endless":    endless,
		"died":       func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://192.0.2.1/secret", http.StatusTemporaryRedirect)
		},
	} {
		_, _, err := serve(t, h).Ask(context.Background(), nil, "secret", "secret")
		if err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: got error %v, want one without text", name, err)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	_, _, err := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body) // else the server does not notice the end of the client
		<-r.Context().Done()
	}).Ask(ctx, nil, "", "")
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("slow: got error %v, want the deadline", err)
	}
	var status *graphiti.StatusError
	if _, _, err = serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }).Ask(context.Background(), nil, "", ""); !errors.As(err, &status) {
		t.Errorf("unauthorized: got error %v, want the status", err)
	}
}
