package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"testing"
)

// TestOpenAPI: the document that the admin side serves describes what it
// answers: every call in it is there, and every member of an answer is in it.
func TestOpenAPI(t *testing.T) {
	t.Parallel()
	w := start(t, t.TempDir(), map[string]string{"identity.users_file": usersFile(t)})
	w.say("My cat is called Miso.")
	w.delivered(1)
	call := func(method, path string, body any) (int, []byte) {
		t.Helper()
		b, _ := json.Marshal(body)
		req, err := http.NewRequest(method, "http://"+w.app.admin.Addr().String()+path, bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		resp, err := w.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		out, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, out
	}
	_, raw := call("GET", "/api/v1/openapi.json", nil)
	var doc struct {
		OpenAPI string
		Paths   map[string]map[string]struct {
			RequestBody any
			Responses   map[string]struct {
				Content map[string]struct{ Schema schema }
			}
		}
	}
	if err := json.Unmarshal(raw, &doc); err != nil || doc.OpenAPI != "3.1.0" {
		t.Fatalf("%v: %.300s", err, raw)
	}
	bodies := map[string]m{
		"/api/v1/queue/retry": {"all": true}, "/api/v1/queue/drop": {"all": true},
		"/api/v1/memory/groups": {"group": "g"}, "/api/v1/memory/show": {}, "/api/v1/memory/list": {}, "/api/v1/memory/search": {"query": "cat", "all": true},
		"/api/v1/memory/promote": {"kind": "decision", "text": "Use Postgres."}, "/api/v1/memory/forget": {"group": "g"},
		"/api/v1/memory/import":   {"lines": []m{{"role": "user", "content": "hi"}}},
		"/api/v1/registry/accept": {"id": "josh", "keep": true},
	}
	queries := map[string]string{"/api/v1/memory/export": "?group=" + w.group()}
	calls := 0
	for path, methods := range doc.Paths {
		for method, op := range methods {
			calls++
			status, answer := call(map[string]string{"get": "GET", "post": "POST"}[method], path+queries[path], bodies[path])
			if status != http.StatusOK {
				t.Errorf("%s %s: %d %s", method, path, status, answer)
				continue
			}
			if (op.RequestBody != nil) != (bodies[path] != nil) {
				t.Errorf("%s %s: described body %v", method, path, op.RequestBody != nil)
			}
			c, ok := op.Responses["200"].Content["application/json"]
			if !ok {
				continue
			}
			var v any
			if err := json.Unmarshal(answer, &v); err != nil {
				t.Errorf("%s %s: %v", method, path, err)
			}
			c.Schema.check(t, path, v)
		}
	}
	if calls < 15 {
		t.Errorf("%d calls are described", calls)
	}
}

type schema struct {
	Properties           map[string]schema
	AdditionalProperties *schema // of a map, whatever its keys are
	Items                *schema
}

// check finds members that are not described.
func (s *schema) check(t *testing.T, where string, v any) {
	t.Helper()
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			p, ok := s.Properties[name]
			if !ok && s.AdditionalProperties != nil {
				p, ok = *s.AdditionalProperties, true
			}
			if !ok {
				t.Errorf("%s.%s is not described", where, name)
				continue
			}
			p.check(t, where+"."+name, member)
		}
	case []any:
		for _, item := range v {
			if s.Items == nil {
				t.Errorf("%s is described as no list", where)
				break
			}
			s.Items.check(t, where, item)
		}
	}
}
