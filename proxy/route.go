package proxy

import (
	"crypto/tls"

	"github.com/valyala/fasthttp"

	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect/registry"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/wire"
)

// route is the registry's route of a request, with its upstream.
type route struct {
	registry.Route
	upstream *wire.Upstream
	named    string // the upstream's name in the setting upstreams; empty for an API's upstream
}

// replays reports whether the request has a conversation, but asks for no answer, such as
// a count of its tokens: earlier blocks are inserted, and nothing else happens.
func (r *route) replays() bool { return r.Use == dialect.UseReplay }

// match returns the route of a request from the registry, and removes an upstream's name
// from its path. The route's upstream is nil if the path has an unknown name.
func (s *Server) match(h *fasthttp.RequestHeader) route {
	all := s.routing().upstreams
	n, named := all.Named(h)
	path := n.Path
	if path == nil {
		path = wire.PlainPath(h.RequestURI())
	}
	r := route{routeOf(h, path), n.Upstream, n.Name}
	if !named {
		r.upstream = all[r.Upstream]
	}
	return r
}

// routeOf returns the registry's route of a request by its path in plain spelling.
func routeOf(h *fasthttp.RequestHeader, path []byte) registry.Route {
	return registry.Find(dialect.Request{Method: h.Method(), Path: path, Header: h})
}

// Routes are the upstreams, and the limits of requests. SetRoutes does not change the
// limits of the listener.
type Routes struct {
	Upstreams map[string]string // base addresses, by the registry's names and others
	Limits    Limits
	WebSocket WebSocket // mode for the Responses API over WebSocket
	Logged    bool      // log a line for each request at level info
	Hashed    bool      // show hashes of people in place of their names
}

// routes are Routes in use, with their upstreams.
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

// SetRoutes changes the routes for later requests. Requests in progress keep theirs.
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

// apply makes routes the current ones.
func (s *Server) apply(now *routes, w Routes) {
	s.routes.Store(now)
	s.observer.LogRequests(w.Logged, w.Hashed)
	s.rates.Set(w.Limits.Rates)
	if s.budget != nil {
		s.budget.Set(w.Limits.InspectTotal)
	}
}

// timeouts returns the timeouts of upstreams and clients.
func (w *routes) timeouts() wire.Timeouts {
	return wire.Timeouts{Response: w.limits.UpstreamResponse, Idle: w.limits.UpstreamIdle, Body: w.limits.BodyTimeout}
}
