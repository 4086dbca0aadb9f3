package graphiti

import (
	"context"
	"crypto/rand"
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

// calls lists what is asked of the service, as its openapi.json names it.
var calls = []struct{ method, path string }{
	{"get", "/healthcheck"},
	{"post", "/messages"},
	{"post", "/search"},
	{"get", "/episodes/{group_id}"},
	{"delete", "/group/{group_id}"},
}

// Check tries, in this order, whether the service lives, whether it has the
// calls that are made, and whether a search works, which needs its database
// and its embedder. report is called after each.
func (r *REST) Check(ctx context.Context, report func(Check)) {
	run(ctx, report, "healthcheck", r.Health,
		"start Graphiti, or correct memory.endpoint (now "+r.base+")")
	run(ctx, report, "openapi.json", r.checkAPI,
		"use a version of Graphiti's REST service with these calls (getzep/graphiti, server/graph_service)")
	run(ctx, report, "search", func(ctx context.Context) error {
		_, err := r.Search(ctx, []string{"graphiti_proxy_check"}, "test", 1)
		return err
	}, "look at Graphiti's log: its database (Neo4j 5.18 or newer), its embedding model and the model aliases text-embedding-3-small and gpt-4.1-nano must be reachable")
}

func run(ctx context.Context, report func(Check), name string, f func(context.Context) error, remedy string) {
	start := time.Now()
	err := f(ctx)
	c := Check{Name: name, Took: time.Since(start), OK: err == nil}
	if err != nil {
		c.Detail, c.Remedy = err.Error(), remedy
	}
	report(c)
}

func (r *REST) checkAPI(ctx context.Context) error {
	var api struct {
		Paths map[string]map[string]any `json:"paths"`
	}
	if err := r.call(ctx, http.MethodGet, "/openapi.json", nil, &api); err != nil {
		return err
	}
	var missing []string
	for _, c := range calls {
		if _, ok := api.Paths[c.path][c.method]; !ok {
			missing = append(missing, strings.ToUpper(c.method)+" "+c.path)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("the service does not have %s", strings.Join(missing, ", "))
	}
	return nil
}

// Smoke writes to a group of its own, waits until the episode is there, which
// proves that the service's worker lives, and deletes the group whatever
// happens. It gives up when ctx ends.
func (r *REST) Smoke(ctx context.Context, report func(Check)) {
	group := "graphiti_proxy_smoke_" + rand.Text()
	name := "graphiti-proxy.smoke"
	run(ctx, report, "write a message", func(ctx context.Context) error {
		return r.Write(ctx, group, []Message{{
			Name: name, RoleType: RoleUser, Content: "smoke test: Ada lives in London", Timestamp: time.Now(),
			SourceDescription: `{"source":"graphiti-proxy"}`,
		}})
	}, "look at Graphiti's log")
	run(ctx, report, "wait for its episode", func(ctx context.Context) error { return r.await(ctx, group, name) },
		"Graphiti accepted the message and did not keep it: its worker has died, which only a restart mends (getzep/graphiti#1707); look in its log for the exception, often a missing model alias")
	// A context of its own: what was written is deleted also when ctx is over.
	cleanup, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	run(cleanup, report, "delete the group", func(ctx context.Context) error { return r.Forget(ctx, group) },
		"delete the group "+group+" by hand")
}

func (r *REST) await(ctx context.Context, group, name string) error {
	for wait := 200 * time.Millisecond; ; wait = min(2*wait, 5*time.Second) {
		episodes, err := r.Episodes(ctx, group, 10)
		for _, e := range episodes {
			if e.Name == name {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return errors.Join(errors.New("the episode did not appear in time"), err)
		case <-time.After(wait):
		}
	}
}
