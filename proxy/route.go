package proxy

import (
	"bytes"

	"github.com/valyala/fasthttp"

	"github.com/graphiti-proxy/graphiti-proxy/dialect"
	"github.com/graphiti-proxy/graphiti-proxy/dialect/registry"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/wire"
)

// route says where a request goes and whether it is understood.
type route struct {
	dialect  dialect.Dialect // nil: forwarded as it is
	upstream *wire.Upstream
	match    dialect.Match
	speaks   dialect.Dialect // whose errors the client understands; nil: OpenAI's are the best guess
	provider string          // of dialect, for traces

	fetched dialect.Dialect // of an answer that the request fetches; nil: it fetches none
}

// replays reports whether the request's conversation is only looked at by the
// provider: what was decided is inserted, and nothing else happens.
func (r *route) replays() bool { return r.match.Use == dialect.UseReplay }

// match asks the registry for the route of a request.
func (s *Server) match(h *fasthttp.RequestHeader) route {
	r, upstream := routeOf(h)
	r.upstream = s.way().upstreams[upstream]
	return r
}

// routeOf is the route of a request, and the name of its upstream.
func routeOf(h *fasthttp.RequestHeader) (r route, upstream string) {
	path, _, _ := bytes.Cut(wire.OriginForm(h.RequestURI()), []byte{'?'})
	found := registry.Find(&dialect.Request{Method: h.Method(), Path: path, Header: h.Peek})
	r = route{match: found.Match, speaks: found.Speaks}
	switch found.Use {
	case dialect.UseTurn, dialect.UseReplay:
		r.dialect, r.provider = found.Dialect, found.Info.Provider
	case dialect.UseFetch:
		r.fetched = found.Dialect
	case dialect.UseNone:
	}
	return r, found.Upstream
}
