// Package registry lists the APIs that are understood, and finds the one of a
// request.
//
// It owns the list and nothing else: what an API is stands in its folder. It
// must not know of memory or of connections. Of our packages it imports dialect
// and its folders.
package registry

import (
	"slices"

	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect/chat"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect/gemini"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect/messages"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect/responses"
)

// All are the APIs that are understood.
var All = []dialect.Dialect{
	chat.Dialect{},
	responses.Dialect{},
	messages.Dialect{},
	gemini.Dialect{},
}

// infos are those of All.
var infos = func() (infos []dialect.Info) {
	for _, d := range All {
		infos = append(infos, d.Info())
	}
	return infos
}()

// Route is what a request is and where it goes.
type Route struct {
	dialect.Match
	Dialect  dialect.Dialect // nil: the request is forwarded as it is
	Info     *dialect.Info   // of Dialect
	Upstream string          // by its name in Upstreams

	// Speaks is the dialect whose errors the client understands, also where the
	// request is forwarded as it is; nil: nobody claims it.
	Speaks dialect.Dialect
}

// Find returns the route of a request.
func Find(r dialect.Request) Route {
	found := Route{Upstream: DefaultUpstream}
	for i, d := range All {
		m := d.Match(r)
		if m.Upstream {
			found.Upstream, found.Speaks = infos[i].Upstream, d
		}
		if m.Use != dialect.UseNone {
			found.Match, found.Dialect, found.Info = m, d, &infos[i]
		}
	}
	if found.Dialect != nil {
		found.Speaks = found.Dialect
	}
	return found
}

// DefaultUpstream serves what no dialect claims.
const DefaultUpstream = "openai"

// Upstreams are the names of those that requests go to, the default one first.
var Upstreams = distinct(func(i *dialect.Info) []string { return []string{i.Upstream} }, DefaultUpstream)

// Credentials are the places where a request of any of the APIs shows who pays
// for it.
var Credentials = distinct(func(i *dialect.Info) []dialect.Credential { return i.Credentials })

// distinct are the values of all infos, each once, behind those that are first.
func distinct[T comparable](of func(*dialect.Info) []T, first ...T) []T {
	for i := range infos {
		for _, v := range of(&infos[i]) {
			if !slices.Contains(first, v) {
				first = append(first, v)
			}
		}
	}
	return first
}
