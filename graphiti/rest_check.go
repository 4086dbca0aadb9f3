package graphiti

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// Check is one thing that was tried with a memory service.
type Check struct {
	Name   string        `json:"name"`
	Took   time.Duration `json:"took_ns"`
	OK     bool          `json:"ok"`
	Detail string        `json:"detail,omitempty"` // what is wrong
	Remedy string        `json:"remedy,omitempty"` // what to do about it
}

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
func (r *REST) Check(ctx context.Context, report func(Check)) {
	run(ctx, report, "healthcheck", r.Health,
		"start Graphiti, or correct memory.endpoint (now "+r.shown+")")
	run(ctx, report, "openapi.json", r.checkAPI,
		"use a version of Graphiti's REST service with these calls (getzep/graphiti, server/graph_service)")
	run(ctx, report, "search", func(ctx context.Context) error {
		_, err := r.Search(ctx, []string{"graphiti_proxy_check"}, "test", 1)
		return err
	}, "look at Graphiti's log: its database (Neo4j 5.18 or newer), its embedding model and the model aliases text-embedding-3-small and gpt-4.1-nano must be reachable")
}

// run tries one thing and reports whether it worked.
func run(ctx context.Context, report func(Check), name string, f func(context.Context) error, remedy string) bool {
	start := time.Now()
	err := f(ctx)
	c := Check{Name: name, Took: time.Since(start), OK: err == nil}
	if err != nil {
		c.Detail, c.Remedy = err.Error(), remedy
	}
	report(c)
	return err == nil
}

func (r *REST) checkAPI(ctx context.Context) error {
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

// Smoke writes to a group of its own, waits until the episode is there, which
// proves that the service's worker lives, and deletes the group whatever
// happens. It gives up when ctx ends.
func Smoke(ctx context.Context, m Memory, report func(Check)) {
	group := "graphiti_proxy_smoke_" + rand.Text()
	name := "graphiti-proxy.smoke"
	written := run(ctx, report, "write a message", func(ctx context.Context) error {
		return m.Write(ctx, group, []Message{{
			Name: name, RoleType: RoleUser, Content: "smoke test: Ada lives in London", Timestamp: time.Now(),
			SourceDescription: `{"source":"graphiti-proxy"}`,
		}})
	}, "look at Graphiti's log")
	if written {
		run(ctx, report, "wait for its episode", func(ctx context.Context) error { return await(ctx, m, group, name) },
			notKept(m).Remedy())
	}
	// A context of its own: what was written is deleted also when ctx is over.
	cleanup, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	deleting := ""
	run(cleanup, func(c Check) {
		c.Remedy = cmp.Or(deleting, c.Remedy)
		report(c)
	}, "delete the group", func(ctx context.Context) error {
		err := m.Forget(ctx, group)
		deleting = Remedy(err)
		return err
	}, "delete the group "+group+" by hand")
}

// notKept says why a memory does not keep a message that it accepted.
func notKept(m Memory) Diagnosis {
	if m.Apart() {
		return ModelFails
	}
	return NeverKept
}

// await waits until a message is listed, or a search shows what was read from
// it: not all servers list.
func await(ctx context.Context, m Memory, group, name string) error {
	for wait := 200 * time.Millisecond; ; wait = min(2*wait, 5*time.Second) {
		episodes, err := m.Episodes(ctx, group, 10)
		for _, e := range episodes {
			if e.Name == name {
				return nil
			}
		}
		if facts, failed := m.Search(ctx, []string{group}, "Ada London", 1); failed == nil && len(facts) > 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(errors.New("the episode did not appear in time"), err)
		case <-time.After(wait):
		}
	}
}
