package rest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti/remote"
)

// calls lists the calls that the client makes, by their names in the service's
// openapi.json, with the fields that it sends.
var calls = []struct {
	method, path string
	fields       []string
}{
	{"get", "/healthcheck", nil},
	{"post", "/messages", []string{"group_id", "messages", "messages.content", "messages.role_type", "messages.role",
		"messages.name", "messages.timestamp", "messages.source_description"}},
	{"post", "/search", []string{"group_ids", "query", "max_facts"}},
	{"get", "/episodes/{group_id}", nil},
	{"delete", "/group/{group_id}", nil},
}

// Check tests, in this order, the service's health, its calls, its database, and a search,
// which also needs its embedder. It calls report after each test.
func (r *Client) Check(ctx context.Context, report func(remote.Check)) {
	if !remote.Reach(ctx, report, "healthcheck", r.Health,
		"start Graphiti, or correct memory.endpoint (now "+r.shown+")",
		"correct memory.endpoint (now "+r.shown+"), or, if this is Graphiti's MCP server, set memory.backend to graphiti-mcp") {
		return
	}
	remote.Run(ctx, report, "openapi.json", r.checkAPI,
		"use a version of Graphiti's REST service with these calls (getzep/graphiti, server/graph_service)")
	remote.Run(ctx, report, "database", r.CheckDatabase, "look at Graphiti's log: its database (Neo4j 5.18 or newer) must be reachable")
	remote.Run(ctx, report, "search", func(ctx context.Context) error {
		_, err := r.Search(ctx, []string{"graphiti_proxy_check"}, "test", 1)
		return err
	}, "look at Graphiti's log: its database (Neo4j 5.18 or newer), its embedding model and the model aliases text-embedding-3-small and gpt-4.1-nano must be reachable")
}

func (r *Client) checkAPI(ctx context.Context) error {
	var body json.RawMessage
	if err := r.call(ctx, http.MethodGet, "/openapi.json", nil, &body); err != nil {
		return err
	}
	api := openAPI{gjson.ParseBytes(body)}
	var missing []string
	for _, c := range calls {
		name := strings.ToUpper(c.method) + " " + c.path
		op := api.Get("paths." + gjson.Escape(c.path) + "." + c.method)
		if !op.IsObject() {
			missing = append(missing, name)
			continue
		}
		sent := op.Get("requestBody.content.application/json.schema")
		for _, f := range c.fields {
			if !api.has(sent, strings.Split(f, ".")) {
				missing = append(missing, f+" of "+name)
			}
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("the service does not have %s", strings.Join(missing, ", "))
	}
	return nil
}

// openAPI is the service's description.
type openAPI struct{ gjson.Result }

// has reports whether the schema of a value has a field. It follows a reference and a list
// once per step of the path, so that it terminates on recursive schemas.
func (a openAPI) has(schema gjson.Result, path []string) bool {
	for _, field := range path {
		schema = a.named(schema)
		if items := schema.Get("items"); items.Exists() {
			schema = a.named(items)
		}
		if schema = schema.Get("properties." + gjson.Escape(field)); !schema.Exists() {
			return false
		}
	}
	return true
}

// named returns the schema that a reference names, or the schema itself.
func (a openAPI) named(schema gjson.Result) gjson.Result {
	if name, ok := strings.CutPrefix(schema.Get("$ref").Str, "#/components/schemas/"); ok {
		return a.Get("components.schemas." + gjson.Escape(name))
	}
	return schema
}
