package admin

import (
	"net/http"
	"reflect"
	"strings"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture"
	"github.com/graphiti-proxy/graphiti-proxy/internal/health"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
)

// endpoint is a call of the admin side. The table of them is what is served,
// and what the OpenAPI document is made of.
type endpoint struct {
	method, path string
	about        string
	params       string // of the query, by white space
	in, out      any    // bodies; nil: none, or not JSON
	open         bool   // needs no token
	owned        bool   // is about what is in the data directory
	serve        http.HandlerFunc
}

func (s *Server) endpoints() []endpoint {
	type ready struct {
		Ready  bool          `json:"ready"`
		Memory health.Memory `json:"memory"`
	}
	return []endpoint{
		{method: "GET", path: "/healthz", about: "200 while the process lives", open: true, serve: s.healthz},
		{method: "GET", path: "/readyz", about: "200 when requests are forwarded; the body says whether memory works", out: ready{}, open: true, serve: s.readyz},
		{method: "GET", path: "/metrics", about: "Metrics for Prometheus", open: true, serve: s.o.Metrics.ServeHTTP},
		{method: "GET", path: "/api/v1/openapi.json", about: "This document", serve: s.openAPI},
		{method: "GET", path: "/api/v1/status", about: "How the proxy is; fresh=true asks the memory now, else its last answer counts", params: "fresh", out: health.Status{}, serve: s.status},
		{method: "GET", path: "/api/v1/queue", about: "Counts of the queue", out: capture.QueueStatus{}, owned: true, serve: s.queue},
		{method: "GET", path: "/api/v1/queue/turns", about: "Undelivered turns", params: "state group limit text", out: service.Listed{}, owned: true, serve: s.turns},
		{method: "POST", path: "/api/v1/queue/retry", about: "Deliver dead letters again", in: service.Selection{}, out: service.Affected{}, owned: true, serve: s.change("retry turns", service.Queue.Retry)},
		{method: "POST", path: "/api/v1/queue/drop", about: "Delete dead letters for good", in: service.Selection{}, out: service.Affected{}, owned: true, serve: s.change("drop turns", service.Queue.Drop)},
		{method: "POST", path: "/api/v1/memory/groups", about: "The groups that somebody's memory is in", in: service.Selector{}, out: service.Meant{}, owned: true, serve: unhurried(s.groups())},
		{method: "POST", path: "/api/v1/memory/show", about: "The last messages that are kept", in: ShowRequest{}, out: service.Shown{}, owned: true, serve: s.show()},
		{method: "POST", path: "/api/v1/memory/list", about: "What there is memory of: a person's own, projects and conversations, with counts", in: ListRequest{}, out: service.Catalog{}, owned: true, serve: s.catalog()},
		{method: "POST", path: "/api/v1/memory/search", about: "What a message would recall", in: SearchRequest{}, out: service.Searched{}, owned: true, serve: s.search()},
		{method: "POST", path: "/api/v1/memory/promote", about: "Store a text verbatim", in: PromoteRequest{}, out: service.Promoted{}, owned: true, serve: s.promote()},
		{method: "POST", path: "/api/v1/memory/import", about: "Import lines, each once", in: ImportRequest{}, out: service.Imported{}, owned: true, serve: unhurried(s.importLines())},
		{method: "POST", path: "/api/v1/memory/forget", about: "Empty a group everywhere, or what was said in it in a session", in: service.Selector{}, out: service.Forgotten{}, owned: true, serve: unhurried(s.forget())},
		{method: "POST", path: "/api/v1/registry/accept", about: "Say that the memory of a registered person is theirs", in: service.Acceptance{}, out: service.Accepted{}, owned: true, serve: unhurried(s.accept())},
		{method: "GET", path: "/api/v1/memory/export", about: "All that is kept of a group, or of a session in it, as JSON Lines of Record", params: "group session user credential", owned: true, serve: unhurried(s.export)},
	}
}

// openAPI serves the description of the calls.
func (s *Server) openAPI(w http.ResponseWriter, _ *http.Request) {
	paths := make(map[string]map[string]any)
	for _, e := range s.endpoints() {
		op := map[string]any{"summary": e.about, "operationId": strings.ToLower(e.method) + strings.NewReplacer("/api/v1", "", "/", "_", ".", "_").Replace(e.path)}
		ok := map[string]any{"description": "done"}
		if e.out != nil {
			ok["content"] = jsonOf(e.out)
		}
		answers := map[string]any{"200": ok}
		if !e.open {
			op["security"] = []any{map[string]any{"token": []string{}}}
			failed := map[string]any{"description": "what is wrong", "content": jsonOf(refusal{})}
			for _, code := range []string{"400", "401", "403", "404", "421", "429", "500", "502"} {
				answers[code] = failed
			}
		}
		if e.path == "/readyz" {
			answers["503"] = ok
		}
		op["responses"] = answers
		if e.in != nil {
			op["requestBody"] = map[string]any{"required": true, "content": jsonOf(e.in)}
		}
		var params []any
		for _, p := range strings.Fields(e.params) {
			params = append(params, map[string]any{"name": p, "in": "query", "schema": map[string]any{"type": "string"}})
		}
		if params != nil {
			op["parameters"] = params
		}
		if paths[e.path] == nil {
			paths[e.path] = make(map[string]any)
		}
		paths[e.path][strings.ToLower(e.method)] = op
	}
	writeJSON(w, http.StatusOK, map[string]any{
		"openapi": "3.1.0",
		"info":    map[string]any{"title": "graphiti-proxy, the admin side", "version": "1"},
		"paths":   paths,
		"components": map[string]any{"securitySchemes": map[string]any{
			"token": map[string]any{"type": "http", "scheme": "bearer", "description": "admin.token, where one is set"},
		}},
	})
}

// refusal is the body of an error.
type refusal struct {
	Error string `json:"error"`
}

func jsonOf(v any) map[string]any {
	return map[string]any{"application/json": map[string]any{"schema": schemaOf(reflect.TypeOf(v))}}
}

// schemaOf describes a type as it is written in JSON.
func schemaOf(t reflect.Type) map[string]any {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return map[string]any{"type": "string", "format": "date-time"}
	case t.Kind() == reflect.Pointer:
		return schemaOf(t.Elem())
	case t.Kind() == reflect.Slice:
		return map[string]any{"type": []string{"array", "null"}, "items": schemaOf(t.Elem())}
	case t.Kind() == reflect.Struct:
		properties := make(map[string]any)
		fieldsOf(t, properties)
		return map[string]any{"type": "object", "properties": properties}
	case t.Kind() == reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": schemaOf(t.Elem())}
	case t.Kind() == reflect.Bool:
		return map[string]any{"type": "boolean"}
	case t.Kind() >= reflect.Int && t.Kind() <= reflect.Uint64:
		return map[string]any{"type": "integer"}
	case t.Kind() == reflect.Float64:
		return map[string]any{"type": "number"}
	}
	return map[string]any{"type": "string"}
}

func fieldsOf(t reflect.Type, properties map[string]any) {
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			fieldsOf(f.Type, properties)
		case name != "" && name != "-":
			properties[name] = schemaOf(f.Type)
		}
	}
}
