package service_test

import (
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/graphititest"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/mcp"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/remote"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/rest"
	"github.com/graphiti-proxy/graphiti-proxy/internal/servicetest"
)

// onGraphiti opens a service on a Graphiti, over MCP or REST.
func onGraphiti(t *testing.T, kind string, g *graphititest.Graphiti) *servicetest.Fixture {
	t.Helper()
	return servicetest.Open(t, t.TempDir(), servicetest.Options{Graph: memoryOf(t, kind, g)})
}

// memoryOf returns a memory that is connected to a Graphiti.
func memoryOf(t *testing.T, kind string, g *graphititest.Graphiti) *graphiti.Memory {
	t.Helper()
	at := remote.Options{Endpoint: g.URL()}
	if kind == "graphiti-mcp" {
		c, err := mcp.New(at)
		must(t, err)
		return c.Memory()
	}
	c, err := rest.New(at)
	must(t, err)
	return c.Memory()
}

func startGraphiti(t *testing.T, kind string) *graphititest.Graphiti {
	t.Helper()
	o := graphititest.Options{}
	if kind == "graphiti-mcp" {
		o.MCP = graphititest.Today
	}
	g, err := graphititest.Start(o)
	must(t, err)
	t.Cleanup(func() { g.Close() })
	return g
}
