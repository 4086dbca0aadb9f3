package rest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti/remote"
)

// calls lists what is asked of the service, as its openapi.json names it, with
// the fields that are sent.
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

// Check tries, in this order, whether the service lives, whether it has the
// calls that are made, and whether a search works, which needs its database
// and its embedder. report is called after each.
func (r *Client) Check(ctx context.Context, report func(remote.Check)) {
	remote.Run(ctx, report, "healthcheck", r.Health,
		"start Graphiti, or correct memory.endpoint (now "+r.shown+")")
	remote.Run(ctx, report, "openapi.json", r.checkAPI,
		"use a version of Graphiti's REST service with these calls (getzep/graphiti, server/graph_service)")
	remote.Run(ctx, report, "search", func(ctx context.Context) error {
		_, err := r.Search(ctx, []string{"graphiti_proxy_check"}, "test", 1)
		return err
	}, "look at Graphiti's log: its database (Neo4j 5.18 or newer), its embedding model and the model aliases text-embedding-3-small and gpt-4.1-nano must be reachable")
}

func (r *Client) checkAPI(ctx context.Context) error {
	var api openAPI
	if err := r.call(ctx, http.MethodGet, "/openapi.json", nil, &api); err != nil {
		return err
	}
	var missing []string
	for _, c := range calls {
		call := strings.ToUpper(c.method) + " " + c.path
		var op apiCall
		if json.Unmarshal(api.Paths[c.path][c.method], &op) != nil {
			missing = append(missing, call)
			continue
		}
		body := op.RequestBody.Content["application/json"].Schema
		for _, f := range c.fields {
			if !api.has(body, strings.Split(f, ".")) {
				missing = append(missing, f+" of "+call)
			}
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("the service does not have %s", strings.Join(missing, ", "))
	}
	return nil
}

// openAPI is what is looked at of the service's description.
type openAPI struct {
	Paths      map[string]map[string]json.RawMessage `json:"paths"` // calls, and what is common to those of a path
	Components struct {
		Schemas map[string]apiSchema `json:"schemas"`
	} `json:"components"`
}

type apiCall struct {
	RequestBody struct {
		Content map[string]struct {
			Schema apiSchema `json:"schema"`
		} `json:"content"`
	} `json:"requestBody"`
}

// apiSchema is the form of a value: that of an object, a list, or a reference
// to one that has a name.
type apiSchema struct {
	Ref        string               `json:"$ref"`
	Properties map[string]apiSchema `json:"properties"`
	Items      *apiSchema           `json:"items"`
}

// has looks for a field, following a reference and a list at each step once:
// a description that refers to itself ends with the path.
func (a *openAPI) has(s apiSchema, path []string) bool {
	if len(path) == 0 {
		return true
	}
	s = a.named(s)
	if s.Items != nil {
		s = a.named(*s.Items)
	}
	field, ok := s.Properties[path[0]]
	return ok && a.has(field, path[1:])
}

func (a *openAPI) named(s apiSchema) apiSchema {
	if name, ok := strings.CutPrefix(s.Ref, "#/components/schemas/"); ok {
		return a.Components.Schemas[name]
	}
	return s
}
