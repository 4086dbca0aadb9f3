package admin

import (
	"net/http"
	"reflect"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/graphiti-proxy/graphiti-proxy/internal/health"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
)

// endpoint is a call of the admin side. The table of endpoints defines both the routes and
// the OpenAPI document.
type endpoint struct {
	method, path string
	about        string
	in, out      any  // nil without JSON
	many         bool // JSON Lines of out
	open         bool // needs no token
	serve        http.HandlerFunc
}

// endpoints returns the endpoints of any proxy, and the operations.
func (s *Server) endpoints() []endpoint {
	type ready struct {
		Ready  bool                `json:"ready"`
		Memory health.MemoryStatus `json:"memory"`
	}
	list := []endpoint{
		{method: "GET", path: "/healthz", about: "200 while the process lives", open: true, serve: s.healthz},
		{method: "GET", path: "/readyz", about: "200 when requests are forwarded; the body reports the state of the memory", out: ready{}, open: true, serve: s.readyz},
		{method: "GET", path: "/metrics", about: "Metrics for Prometheus", open: true, serve: s.o.Metrics.ServeHTTP},
		{method: "GET", path: root + "openapi.json", about: "This document", serve: s.openAPI},
	}
	for _, op := range service.Operations() {
		spec, in, out, many := op.Describe()
		e := endpoint{method: http.MethodPost, path: root + spec.Name, about: spec.About, in: in, out: out, many: many, serve: s.serve(op)}
		if spec.Reads {
			e.method = http.MethodGet
		}
		list = append(list, e)
	}
	return list
}

func (s *Server) openAPI(w http.ResponseWriter, _ *http.Request) {
	paths := make(map[string]map[string]any)
	for _, e := range s.endpoints() {
		if paths[e.path] == nil {
			paths[e.path] = make(map[string]any)
		}
		paths[e.path][strings.ToLower(e.method)] = e.described()
	}
	writeJSON(w, http.StatusOK, map[string]any{
		"openapi": "3.1.0",
		"info":    map[string]any{"title": "graphiti-proxy, the admin side", "version": "1"},
		"paths":   paths,
		"components": map[string]any{"securitySchemes": map[string]any{
			"token": map[string]any{"type": "http", "scheme": "bearer", "description": "admin.token, if set"},
		}},
	})
}

// described returns the endpoint in the form of OpenAPI.
func (e *endpoint) described() map[string]any {
	op := map[string]any{"summary": e.about, "operationId": strings.ToLower(e.method) + strings.NewReplacer("/api/v1", "", "/", "_", ".", "_").Replace(e.path)}
	ok := map[string]any{"description": "done"}
	if e.many {
		ok["content"] = map[string]any{"application/jsonl": map[string]any{"schema": schemaOf(reflect.TypeOf(e.out))}}
	} else if e.out != nil {
		ok["content"] = jsonOf(e.out)
	}
	answers := map[string]any{"200": ok}
	if !e.open {
		op["security"] = []any{map[string]any{"token": []string{}}}
		failed := map[string]any{"description": "the error", "content": jsonOf(refusal{})}
		for _, code := range []string{"400", "401", "403", "404", "421", "429", "500", "502"} {
			answers[code] = failed
		}
	}
	if e.path == "/readyz" {
		answers["503"] = ok
	}
	op["responses"] = answers
	switch {
	case e.in == nil:
	case e.method == http.MethodPost:
		op["requestBody"] = map[string]any{"required": true, "content": jsonOf(e.in)}
	default:
		var params []any
		for f := range reflect.TypeOf(e.in).Fields() {
			if f.IsExported() {
				params = append(params, map[string]any{"name": nameOf(f), "in": "query", "schema": schemaOf(f.Type)})
			}
		}
		if params != nil {
			op["parameters"] = params
		}
	}
	return op
}

func jsonOf(v any) map[string]any {
	return map[string]any{"application/json": map[string]any{"schema": schemaOf(reflect.TypeOf(v))}}
}

// schemaOf returns the schema of a type in JSON.
func schemaOf(t reflect.Type) *jsonschema.Schema {
	moment := &jsonschema.Schema{Type: "string", Format: "date-time"}
	s, err := jsonschema.ForType(t, &jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{reflect.TypeFor[time.Time](): moment}})
	if err != nil {
		panic(err) // an operation has a type without a form in JSON
	}
	return open(s)
}

// open makes a schema accept objects of other versions: it requires no member, and excludes none.
func open(s *jsonschema.Schema) *jsonschema.Schema {
	s.Required = nil
	if s.Properties != nil {
		s.AdditionalProperties = nil
	}
	for _, p := range s.Properties {
		open(p)
	}
	for _, p := range []*jsonschema.Schema{s.Items, s.AdditionalProperties} {
		if p != nil {
			open(p)
		}
	}
	return s
}

func nameOf(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}
