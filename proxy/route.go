package proxy

import (
	"crypto/tls"

	"github.com/valyala/fasthttp"

	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect/registry"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/wire"
)

// route says where a request goes and whether it is understood.
type route struct {
	dialect  dialect.Dialect // nil: forwarded as it is
	upstream *wire.Upstream
	match    dialect.Match
	speaks   dialect.Dialect // whose errors the client understands
	provider string          // of dialect, for traces
	api      string          // the name of dialect

	unserved bool // a model answers, in an API that has no memory

	named   string          // the upstream's name in the setting upstreams; empty: it is an API's
	fetched dialect.Dialect // of an answer that the request fetches; nil: it fetches none
}

// replays reports whether the request's conversation is only looked at by the
// provider: what was decided is inserted, and nothing else happens.
func (r *route) replays() bool { return r.match.Use == dialect.UseReplay }

// match asks the registry for the route of a request, and cuts an upstream's name
// off its path. The route's upstream is nil where the path asks
// for a name that none has.
func (s *Server) match(h *fasthttp.RequestHeader) route {
	all := s.routing().upstreams
	n, named := all.Named(h)
	path := n.Path
	if path == nil {
		path = wire.PlainPath(h.RequestURI())
	}
	r, api := routeOf(h, path)
	if r.named, r.upstream = n.Name, n.Upstream; !named {
		r.upstream = all[api]
	}
	return r
}

// routeOf is the route of a request by its path in the plain spelling, and the
// name of its API's upstream.
func routeOf(h *fasthttp.RequestHeader, path []byte) (r route, api string) {
	found := registry.Find(dialect.Request{Method: h.Method(), Path: path, Header: h})
	r = route{match: found.Match, speaks: found.Speaks, unserved: found.Unserved}
	switch found.Use {
	case dialect.UseTurn, dialect.UseReplay:
		r.dialect, r.provider, r.api = found.Dialect, found.Info.Provider, found.Info.Name
	case dialect.UseFetch:
		r.fetched = found.Dialect
	case dialect.UseNone:
	}
	return r, found.Upstream
}

// Routes say where requests go and how much of them is looked at. Of the limits
// those of the listener stay what they were when the server was made.
type Routes struct {
	Upstreams map[string]string // base addresses, by the names that the registry of dialects has, and by others
	Limits    Limits
	WebSocket WebSocket // the Responses API over one
	Logged    bool      // a line for each request at info
}

// routes are Routes as they are in force, with their upstreams.
type routes struct {
	upstreams Upstreams
	limits    Limits
	webSocket WebSocket
}

func newRoutes(w Routes, roots *tls.Config) (*routes, error) {
	all, err := NewUpstreams(w.Upstreams, roots, w.Limits.UpstreamConnect)
	return &routes{upstreams: all, limits: w.Limits, webSocket: w.WebSocket}, err //nolint:wrapcheck // it names the upstream
}

func (s *Server) routing() *routes { return s.routes.Load() }

// SetRoutes changes them from the next request on; requests under way end as
// they began.
func (s *Server) SetRoutes(w Routes) error {
	now, err := newRoutes(w, s.roots)
	if err != nil {
		return err
	}
	before := s.routing()
	now.upstreams.Keep(before.upstreams)
	s.apply(now, w)
	before.upstreams.Retire(now.upstreams)
	return nil
}

// apply puts routes in force.
func (s *Server) apply(now *routes, w Routes) {
	s.routes.Store(now)
	s.observer.LogRequests(w.Logged)
	if s.budget != nil {
		s.budget.Set(w.Limits.InspectTotal)
	}
}

// timeouts are those of upstreams.
func (w *routes) timeouts() wire.Timeouts {
	return wire.Timeouts{Response: w.limits.UpstreamResponse, Idle: w.limits.UpstreamIdle}
}
