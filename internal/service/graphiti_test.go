package service_test

import (
	"strings"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/graphititest"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/mcp"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/remote"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/rest"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
	"github.com/graphiti-proxy/graphiti-proxy/internal/servicetest"
)

// onGraphiti opens a service on a Graphiti, over MCP or REST.
func onGraphiti(t *testing.T, kind string, g *graphititest.Graphiti) *servicetest.Fixture {
	t.Helper()
	return servicetest.Open(t, t.TempDir(), servicetest.Options{Remote: memoryOf(t, kind, g)})
}

// memoryOf returns a memory that is connected to a Graphiti.
func memoryOf(t *testing.T, kind string, g *graphititest.Graphiti) *graphiti.Memory {
	t.Helper()
	at := remote.Options{Endpoint: g.URL()}
	if kind == "graphiti-mcp" {
		c, err := mcp.New(at)
		if err != nil {
			t.Fatal(err)
		}
		return c.Memory()
	}
	c, err := rest.New(at)
	if err != nil {
		t.Fatal(err)
	}
	return c.Memory()
}

func startGraphiti(t *testing.T, kind string) *graphititest.Graphiti {
	t.Helper()
	o := graphititest.Options{}
	if kind == "graphiti-mcp" {
		o.MCP = graphititest.Today
	}
	g, err := graphititest.Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.Close() })
	return g
}

// TestWhatIsFoundThoughNotListedIsThere checks a group of another data directory that the
// server does not list but a search finds. No operation reports the group as empty, and
// Forget deletes it.
func TestWhatIsFoundThoughNotListedIsThere(t *testing.T) {
	g := startGraphiti(t, "graphiti-mcp")
	for name, tc := range map[string]struct {
		s         service.Selector
		workspace string
		group     string
	}{
		"a person":  {service.Selector{User: "josh"}, "", "user_josh"},
		"a group":   {service.Selector{Group: "user_josh"}, "", "user_josh"},
		"a project": {service.Selector{Workspace: "https://github.com/acme/widgets"}, widgets, "workspace_github_repo_github_com_acme_widgets-27bf01bfae610991"},
	} {
		t.Run(name, func(t *testing.T) {
			g.Blind(graphititest.Sees)
			before := onGraphiti(t, "graphiti-mcp", g)
			before.Say(t, "josh", "s1", tc.workspace, "My cat is called Miso.")
			if err := g.Settle(t.Context()); err != nil {
				t.Fatal(err)
			}
			g.Blind(graphititest.BlindListing)
			in := service.Selector{Session: "typo"}
			if _, err := service.Groups.Run(t.Context(), before.Host, &in); err == nil || !strings.Contains(err.Error(), "lists no messages of it") {
				t.Errorf("a session that might be there: %v", err)
			}
			before.Close()

			m := onGraphiti(t, "graphiti-mcp", g) // a new data directory
			if found := run(t, m, service.Search, service.SearchRequest{Selector: tc.s, Query: "What is my cat called?"}); len(found.Facts) == 0 || !strings.Contains(found.Facts[0].Text, "Miso") {
				t.Fatalf("it is not found to begin with: %+v", found)
			}
			err := service.Export.Each(t.Context(), m.Host, &service.ExportRequest{Group: tc.group}, func(service.Record) error { return nil })
			if err == nil || !strings.Contains(err.Error(), "lists no messages of it") || !strings.Contains(err.Error(), "; to do: ") {
				t.Errorf("export: %v", err)
			}
			if shown := run(t, m, service.Show, service.ShowRequest{Selector: tc.s, Last: 20}); len(shown.Unlisted) != 1 || shown.Unlisted[0] != tc.group {
				t.Errorf("show: %+v", shown)
			}
			for _, o := range run(t, m, service.Groups, tc.s).Groups {
				if o.Group == tc.group && o.Empty {
					t.Errorf("%+v", o)
				}
			}
			run(t, m, service.Forget, service.ForgetRequest{Selector: service.Selector{Group: tc.group}})
			if left := g.Episodes(tc.group); len(left) > 0 {
				t.Errorf("%d episodes are left", len(left))
			}
			if found := run(t, m, service.Groups, service.Selector{Group: "another"}); len(found.Groups) != 1 || !found.Groups[0].Empty {
				t.Errorf("an empty one: %+v", found)
			}
		})
	}
}

// TestCatalogOfGraphiti checks that the list counts the messages that this proxy wrote, has
// a note that Graphiti cannot list its groups, and fails if the server lists no messages.
func TestCatalogOfGraphiti(t *testing.T) {
	for _, kind := range []string{"graphiti", "graphiti-mcp"} {
		t.Run(kind, func(t *testing.T) {
			g := startGraphiti(t, kind)
			m := onGraphiti(t, kind, g)
			m.Say(t, "", "one", widgets, "Our database is Postgres.")
			m.Say(t, "", "two", "", "The sky is blue.")
			if err := g.Settle(t.Context()); err != nil {
				t.Fatal(err)
			}
			all := run(t, m, service.List, service.ListRequest{Limit: 50})
			if len(all.Memories) != 2 || len(all.Conversations) != 2 || !strings.Contains(all.Note, "cannot list its groups") {
				t.Fatalf("%+v", all)
			}
			for _, k := range all.Memories {
				if k.Messages != 2 || k.Name != "you" && k.Name != "acme/widgets" {
					t.Errorf("%+v", k)
				}
			}
			if kind != "graphiti-mcp" {
				return
			}
			g.Blind(graphititest.BlindListing)
			if _, _, err := call(t, m, "memory/list", `{}`); err == nil || !strings.Contains(err.Error(), "lists no messages of it") {
				t.Errorf("of nothing that can be listed: %v", err)
			}
		})
	}
}
