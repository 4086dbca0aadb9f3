package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/internal/health"
	"github.com/graphiti-proxy/graphiti-proxy/internal/helptest"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
	"github.com/graphiti-proxy/graphiti-proxy/internal/servicetest"
)

type m = map[string]any

// post sends body in a POST request, or a GET request if body is nil, and returns the
// status and the answer.
func post(t *testing.T, at string, body any, headers ...string) (int, string) {
	t.Helper()
	method := http.MethodGet
	if body != nil {
		method = http.MethodPost
	}
	b, _ := json.Marshal(body)
	req, err := http.NewRequest(method, at, bytes.NewReader(b))
	must(t, err)
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	tr := &http.Transport{DisableKeepAlives: true}
	resp, err := tr.RoundTrip(req)
	out := helptest.Body(t, resp, err)
	return resp.StatusCode, string(out)
}

// document is an OpenAPI document.
type document struct {
	OpenAPI    string
	Info       struct{ Title, Version string }
	Components struct {
		SecuritySchemes map[string]struct{ Type, Scheme string }
	}
	Paths map[string]map[string]struct {
		Summary, OperationID string
		Security             []map[string][]string
		Parameters           []struct {
			Name, In string
			Schema   schema
		}
		RequestBody *struct {
			Content map[string]struct{ Schema schema }
		}
		Responses map[string]struct {
			Description string
			Content     map[string]struct{ Schema schema }
		}
	}
}

func openAPI(t *testing.T, base string) (doc document) {
	t.Helper()
	_, raw := post(t, base+"/api/v1/openapi.json", nil)
	if err := json.Unmarshal([]byte(raw), &doc); err != nil || doc.OpenAPI != "3.1.0" || doc.Info.Title == "" || doc.Info.Version == "" {
		t.Fatalf("%v: %.300s", err, raw)
	}
	return doc
}

// TestOpenAPI checks that the served document matches the server: each described call
// works, and the document describes every member of its input and its answer.
func TestOpenAPI(t *testing.T) {
	memory := servicetest.Open(t, t.TempDir(), servicetest.Options{})
	memory.Say(t, "josh", "s", "w", "My cat is called Miso.")
	shown, err := service.Show.Run(t.Context(), memory.Host, &service.ShowRequest{Selector: service.Selector{Workspace: "w"}, Last: 5})
	if err != nil || len(shown.Messages) != 2 {
		t.Fatalf("%+v, %v", shown, err)
	}
	base := serve(t, Options{Host: memory.Host})
	bodies := map[string]m{
		"/api/v1/queue/retry": {"all": true}, "/api/v1/queue/drop": {"all": true},
		"/api/v1/memory/groups": {"group": "g"}, "/api/v1/memory/show": {}, "/api/v1/memory/list": {}, "/api/v1/memory/search": {"query": "cat", "all": true, "workspace": "w"},
		"/api/v1/memory/promote": {"kind": "decision", "text": "Use Postgres."}, "/api/v1/memory/suggest": {"text": "Use Redis.", "workspace": "w"}, "/api/v1/memory/forget": {"group": "g"},
		"/api/v1/memory/send":  {"since": "2026-01-31"},
		"/api/v1/memory/stats": {}, "/api/v1/memory/link": {}, "/api/v1/memory/work": {}, "/api/v1/memory/correct": {"message": shown.Messages[0].ID, "text": "My cat is called Momo.", "workspace": "w"},
		"/api/v1/memory/conversation": {"hash": graphiti.SessionHash("session:s"), "workspace": "w"}, "/api/v1/memory/people": {},
		"/api/v1/memory/import":       {"lines": []m{{"role": "user", "content": "hi"}}},
		"/api/v1/memory/import-turns": {"import": "import-1", "turns": []m{{"client": "qwen", "session": "s1", "id": "1", "user": "hi", "assistant": "Hello."}}},
		"/api/v1/registry/accept":     {"id": "josh", "keep": true},
		"/api/v1/memory/pending":      {"all": true}, "/api/v1/memory/settle": {"accept": []string{"all"}}, "/api/v1/memory/held": {}, "/api/v1/memory/change": {"do": "restore", "messages": []string{shown.Messages[1].ID}, "workspace": "w"}, "/api/v1/memory/history": {},
	}
	queries := map[string]string{"/api/v1/memory/export": "?group=workspace_w", "/api/v1/queue/turns": "?text=true&limit=3", "/api/v1/status": "?fresh=true"}
	for path, methods := range openAPI(t, base).Paths {
		for method, op := range methods {
			var body any
			if bodies[path] != nil {
				body = bodies[path]
			}
			if path == "/api/v1/memory/undo" {
				_, answer := post(t, base+"/api/v1/memory/promote", m{"kind": "preference", "text": "Use tabs."})
				body = m{"id": regexp.MustCompile(`"undo": ?"(\w+)"`).FindStringSubmatch(answer)[1]}
			}
			status, answer := post(t, base+path+queries[path], body)
			if status != http.StatusOK || (method == "post") != (body != nil) {
				t.Errorf("%s %s: %d %s", method, path, status, answer)
				continue
			}
			for kind, c := range op.Responses["200"].Content {
				lines := []string{answer}
				if kind == "application/jsonl" {
					lines = strings.Split(strings.TrimSpace(answer), "\n")
				}
				for _, line := range lines {
					var v any
					if err := json.Unmarshal([]byte(line), &v); err != nil {
						t.Errorf("%s %s: %v in %q", method, path, err, line)
					}
					c.Schema.check(t, path, v)
				}
			}
			if op.RequestBody != nil {
				b, _ := json.Marshal(bodies[path])
				var v any
				_ = json.Unmarshal(b, &v)
				s := op.RequestBody.Content["application/json"].Schema
				s.check(t, path+" body", v)
			}
			said, _ := url.ParseQuery(strings.TrimPrefix(queries[path], "?"))
			for _, p := range op.Parameters {
				delete(said, p.Name)
			}
			if len(said) > 0 {
				t.Errorf("%s: %v are not described", path, said)
			}
		}
	}
}

type schema struct {
	Type                 any
	Properties           map[string]schema
	AdditionalProperties *schema // the values of a map with arbitrary keys
	Items                *schema
}

// check reports members of v that the schema does not describe.
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

// TestTheTableIsServed checks that every operation of the table has a path, a description
// and a unique ID, and that the server describes no other calls except health, metrics and
// the document itself.
func TestTheTableIsServed(t *testing.T) {
	base := serve(t, Options{Token: "secret", Host: servicetest.Open(t, t.TempDir(), servicetest.Options{}).Host})
	req, _ := http.NewRequest(http.MethodGet, base+"/api/v1/openapi.json", nil)
	req.Header.Set("Authorization", "Bearer secret")
	resp, err := http.DefaultClient.Do(req)
	must(t, err)
	defer resp.Body.Close()
	var doc document
	must(t, json.NewDecoder(resp.Body).Decode(&doc))
	if s := doc.Components.SecuritySchemes["token"]; s.Type != "http" || s.Scheme != "bearer" {
		t.Errorf("%+v", doc.Components)
	}
	ids := make(map[string]string)
	for path, methods := range doc.Paths {
		for method, op := range methods {
			if ids[op.OperationID] != "" || op.OperationID == "" || op.Summary == "" || op.Responses["200"].Description == "" {
				t.Errorf("%s %s: %+v", method, path, op)
			}
			for _, need := range op.Security {
				for scheme := range need {
					if _, ok := doc.Components.SecuritySchemes[scheme]; !ok {
						t.Errorf("%s: %s is not declared", path, scheme)
					}
				}
			}
			ids[op.OperationID] = path
			// No operation works without the token.
			if status, _ := post(t, base+path, map[string]any{"get": nil, "post": m{}}[method]); (status == http.StatusUnauthorized) != (op.Security != nil) {
				t.Errorf("%s %s without the token: %d", method, path, status)
			}
		}
	}
	for _, op := range service.Operations() {
		spec, in, _, _ := op.Describe()
		method, path, body, err := Request(spec, in)
		must(t, err)
		path, _, _ = strings.Cut(path, "?")
		described, ok := doc.Paths[path][strings.ToLower(method)]
		if !ok || described.Summary != spec.About || (described.RequestBody != nil) != (body != nil) || described.Security == nil {
			t.Errorf("%s is not described: %+v", spec.Name, described)
		}
		delete(doc.Paths, path)
	}
	for _, path := range []string{"/healthz", "/readyz", "/metrics", "/api/v1/openapi.json"} {
		delete(doc.Paths, path)
	}
	if len(doc.Paths) > 0 {
		t.Errorf("described, and in no table: %v", doc.Paths)
	}
}

// TestAuditLines checks that each access to the memory and each change is logged with its
// owner, caller, peer, groups and result, but without its text. Invalid requests are not
// logged.
func TestAuditLines(t *testing.T) {
	memory := servicetest.Open(t, t.TempDir(), servicetest.Options{})
	memory.Say(t, "josh", "s", "", "My cat is called Miso.")
	var log bytes.Buffer
	base := serve(t, Options{Host: memory.Host, Audit: slog.New(slog.NewTextHandler(&log, nil))})
	for _, tc := range []struct {
		path   string
		body   any
		status int
		want   string // the expected log line, or "" if there is none
	}{
		{"memory/show", m{}, 200, `what=show who="the owner" by="the operator" peer=127.0.0.1 groups=[user_josh] done=true`},
		{"memory/list", m{"limit": 3}, 200, `what=list who="the owner" by="the operator" peer=127.0.0.1 groups=[user_josh] done=true`},
		{"memory/search", m{"user": "josh", "query": "cat"}, 200, `what=search who="user=josh" by="the operator" peer=127.0.0.1 groups=[user_josh] done=true`},
		{"memory/promote", m{"kind": "preference", "text": "I like Miso"}, 200, `what=promote who="the owner" by="the operator" peer=127.0.0.1 groups=[user_josh] done=true kind=preference`},
		{"memory/promote", m{"kind": "preference", "scope": "nonsense", "text": "Miso"}, 400, `what=promote who="the owner" by="the operator" peer=127.0.0.1 groups=[] done=false kind=preference`},
		{"memory/groups", m{"workspace": "w", "own": true}, 200, `what="list groups" who="workspace=w and the person's own" by="the operator" peer=127.0.0.1 groups="[workspace_w user_josh]" done=true`},
		{"memory/import", m{"lines": []m{{"role": "user", "content": "Miso purrs."}}}, 200, `what=import who="the owner" by="the operator" peer=127.0.0.1 groups=[user_josh] done=true kept=1`},
		{"memory/conversation", m{"hash": graphiti.SessionHash("session:s")}, 200, `what="show a conversation" who="the owner" by="the operator" peer=127.0.0.1 groups=[user_josh] done=true`},
		{"memory/export?group=user_josh&session=s", nil, 200, `what=export who="session=s group=user_josh" by="the operator" peer=127.0.0.1 groups=[user_josh] done=true`},
		{"memory/forget", m{"group": "user_josh"}, 200, `what=forget who="group=user_josh" by="the operator" peer=127.0.0.1 groups=[user_josh] done=true`},
		{"registry/accept", m{"id": "josh", "keep": true}, 200, `what="accept a person" who="user=josh" by="the operator" peer=127.0.0.1 groups=[] done=true keep=true`},
		{"queue/retry", m{"all": true}, 200, `what="retry turns" who="the queue" by="the operator" peer=127.0.0.1 groups=[] done=true turns=0`},
		{"queue/drop", m{"numbers": []int{7}}, 200, `what="drop turns" who="the queue" by="the operator" peer=127.0.0.1 groups=[] done=true turns=0`},
		{"queue/turns?text=true", nil, 200, `what="show queued turns" who="the queue" by="the operator" peer=127.0.0.1 groups=[] done=true turns=0`},
		{"queue/turns", nil, 200, ""},
		{"queue", nil, 200, ""},
		{"status", nil, 200, ""},
		{"memory/show", m{"last": -1}, 400, ""},
		{"memory/show", m{"colour": "red"}, 400, ""},
		{"memory/forget", m{"group": "user_josh", "session": ""}, 400, ""},
		{"memory/export", nil, 400, ""},
		{"queue/turns?limit=many", nil, 400, ""},
	} {
		log.Reset()
		status, answer := post(t, base+root+tc.path, tc.body)
		_, got, _ := strings.Cut(strings.TrimSpace(log.String()), "level=INFO msg=audit ")
		got = strings.ReplaceAll(got, `"[user_josh workspace_w]"`, `"[workspace_w user_josh]"`)
		if status != tc.status || got != tc.want {
			t.Errorf("%s: %d %s\n%s, want\n%s", tc.path, status, answer, got, tc.want)
		}
	}
}

// TestFailures checks that the status of a failed call reflects its cause and that the body
// explains the error, in the last line if the answer has begun.
func TestFailures(t *testing.T) {
	type in struct {
		A string `json:"a"`
		N int    `json:"n"`
		B bool   `json:"b"`
	}
	failing := func(s service.Spec, err error) service.Mountable {
		return service.Operation[in, in]{Spec: s, Default: in{N: 4}, Run: func(_ context.Context, _ *service.Host, got *in) (in, error) { return *got, err }}
	}
	wrong, invalid := errors.New("it is wrong"), service.CheckLimit(0)
	reads := service.Spec{Reads: true, WithoutMemory: true}
	many := service.Operation[in, in]{Spec: reads, Each: func(_ context.Context, _ *service.Host, got *in, f func(in) error) error {
		if got.B {
			return invalid
		}
		return errors.Join(f(*got), wrong)
	}}
	off := health.Status{}
	off.Memory.TurnOff(health.FaultSetting, off.Started, "memory.backend is off", "")
	s := &Server{o: Options{Host: &service.Host{Status: func(context.Context, bool) health.Status { return off }}}}
	for name, tc := range map[string]struct {
		op     service.Mountable
		query  string
		body   string // the body of a POST, or "" for a GET
		status int
		want   string
	}{
		"of its input":         {failing(service.Spec{WithoutMemory: true}, wrong), "", "{}", 400, `"error": "it is wrong"`},
		"of the files":         {failing(service.Spec{WithoutMemory: true, Fails: service.OfFiles}, wrong), "", "{}", 500, `"error": "it is wrong"`},
		"of the memory":        {failing(service.Spec{WithoutMemory: true, Fails: service.OfMemory}, wrong), "", "{}", 502, `"error": "it is wrong"`},
		"an invalid input":     {failing(service.Spec{WithoutMemory: true, Fails: service.OfMemory}, invalid), "", "{}", 400, invalid.Error()},
		"no memory":            {failing(service.Spec{}, nil), "", "{}", 404, "memory.backend is off"},
		"nothing":              {failing(service.Spec{WithoutMemory: true}, nil), "", `{"a":"x"}`, 200, `"a": "x",` + "\n" + `  "n": 4`},
		"another field":        {failing(service.Spec{WithoutMemory: true}, nil), "", `{"c":"x"}`, 400, "unknown field"},
		"too large":            {failing(service.Spec{WithoutMemory: true, Size: 8}, nil), "", `{"a":"xxxxxxxx"}`, 400, "too large"},
		"a query":              {failing(reads, nil), "a=x&n=7&b=1&c=other", "", 200, `"n": 7`},
		"an empty query":       {failing(reads, nil), "a=&n=&b=", "", 200, `"n": 4`},
		"no number":            {failing(reads, nil), "n=many", "", 400, `n: \"many\" is not a number`},
		"no switch":            {failing(reads, nil), "b=maybe", "", 400, `b: \"maybe\" is not true or false`},
		"in the middle":        {many, "a=x", "", 200, `{"a":"x","n":0,"b":false}` + "\n" + `{"error":"it is wrong"}` + "\n"},
		"before the first one": {many, "b=true", "", 400, invalid.Error()},
	} {
		w := httptest.NewRecorder()
		method := http.MethodGet
		if tc.body != "" {
			method = http.MethodPost
		}
		r, _ := http.NewRequest(method, "http://localhost/?"+tc.query, strings.NewReader(tc.body))
		r.Header.Set("Content-Type", "application/json")
		r = withCaller(r, service.Operator)
		s.serve(tc.op)(w, r)
		if w.Code != tc.status || !strings.Contains(w.Body.String(), tc.want) {
			t.Errorf("%s: %d %s, want %d %s", name, w.Code, w.Body, tc.status, tc.want)
		}
		r.Header.Set("Content-Type", "text/plain")
		if w := httptest.NewRecorder(); tc.body != "" && name != "no memory" {
			if s.serve(tc.op)(w, r); w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "Content-Type") {
				t.Errorf("%s, as a form of a page: %d %s", name, w.Code, w.Body)
			}
		}
	}
}
