package graphiti_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/embedded"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/graphititest"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/mcp"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/remote"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/rest"
	"github.com/graphiti-proxy/graphiti-proxy/internal/helptest"
)

var must = helptest.Must

// start starts a stand-in Graphiti that ends with the test.
func start(t *testing.T, o graphititest.Options) *graphititest.Graphiti {
	t.Helper()
	s, err := graphititest.Start(o)
	must(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

// overREST is a stand-in Graphiti and a client of its REST service.
func overREST(t *testing.T, o graphititest.Options) (*graphititest.Graphiti, *graphiti.Memory) {
	t.Helper()
	s := start(t, o)
	r, err := rest.New(remote.Options{Endpoint: s.URL()})
	must(t, err)
	t.Cleanup(func() { r.Close() })
	return s, r.Memory()
}

// overMCP is a stand-in Graphiti and a client of its MCP server.
func overMCP(t *testing.T, o graphititest.Options) (*graphititest.Graphiti, *graphiti.Memory) {
	t.Helper()
	s := start(t, o)
	m, err := mcp.New(remote.Options{Endpoint: s.URL()})
	must(t, err)
	t.Cleanup(func() { m.Close() })
	return s, m.Memory()
}

func openEmbedded(t *testing.T) *graphiti.Memory {
	t.Helper()
	e, err := embedded.Open(filepath.Join(t.TempDir(), "memory.db"))
	must(t, err)
	t.Cleanup(func() { e.Close() })
	return e.Memory()
}

func settle(t *testing.T, s *graphititest.Graphiti) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), helptest.Patience)
	defer cancel()
	must(t, s.Settle(ctx))
}
