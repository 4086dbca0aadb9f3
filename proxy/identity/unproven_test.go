package identity

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/valyala/fasthttp"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// TestRegistryIgnoresUnprovenCallers checks that the registry changes nothing for
// an unproven caller in multi mode: the result does not reveal whether a name is
// registered, has its memory turned off, or is unknown.
func TestRegistryIgnoresUnprovenCallers(t *testing.T) {
	var people Registry
	people.Set([]Person{
		{ID: "ann", Off: true, Identities: map[string]string{"email": "ann@example.com", "openwebui": "ow-1"}},
		{ID: "josh", Identities: map[string]string{"email": "josh@example.com", "openwebui": "ow-2"}},
	})
	for _, credential := range []string{"", "Bearer sk-any"} {
		for _, names := range [][]string{
			{"X-Graphiti-User", "email:ann@example.com", "email:josh@example.com", "email:nobody@example.com"},
			{"X-Graphiti-User", "ann", "josh", "nobody"},
			{"X-OpenWebUI-User-Id", "ow-1", "ow-2", "ow-3"},
		} {
			ask := func(known *Registry, name string, more ...string) Caller {
				var h fasthttp.RequestHeader
				if credential != "" {
					h.Set("Authorization", credential)
				}
				h.Set(names[0], name)
				for _, mail := range more {
					h.Add("X-OpenWebUI-User-Email", mail)
				}
				id := Settings{Multi: true, People: known}
				var cl Claims
				return id.Identify(cl.ReadHead(&h), "")
			}
			for _, name := range names[1:] {
				for _, more := range [][]string{nil, {"josh@example.com"}, {"ann@example.com", "josh@example.com"}} {
					if diff := cmp.Diff(ask(nil, name, more...), ask(&people, name, more...), cmp.AllowUnexported(graphiti.Who{})); diff != "" {
						t.Errorf("credential %q, %s %v: what the registry changes, want nothing (-without +with):\n%s", credential, name, more, diff)
					}
				}
			}
		}
	}
}
