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
	speaks   dialect.Dialect // whose errors the client understands; nil: OpenAI's are the best guess
	provider string          // of dialect, for traces

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
	all := s.way().upstreams
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

// Ways say where requests go and how much of them is looked at. Of the limits
// those of the listener stay what they were when the server was made.
type Ways struct {
	Upstreams map[string]string // base addresses, by the names that the registry of dialects has, and by others
	Limits    Limits
	WebSocket WebSocket // the Responses API over one
	Logged    bool      // a line for each request at info
}

// ways are those in force.
type ways struct {
	upstreams Upstreams
	limits    Limits
	webSocket WebSocket
}

func newWays(w Ways, roots *tls.Config) (*ways, error) {
	all, err := NewUpstreams(w.Upstreams, roots, w.Limits.UpstreamConnect)
	return &ways{upstreams: all, limits: w.Limits, webSocket: w.WebSocket}, err //nolint:wrapcheck // it names the upstream
}

func (s *Server) way() *ways { return s.ways.Load() }

// SetWays changes them from the next request on; requests under way end as
// they began.
func (s *Server) SetWays(w Ways) error {
	now, err := newWays(w, s.roots)
	if err != nil {
		return err
	}
	before := s.way()
	now.upstreams.Keep(before.upstreams)
	s.apply(now, w)
	before.upstreams.Retire(now.upstreams)
	return nil
}

// apply has ways in force.
func (s *Server) apply(now *ways, w Ways) {
	s.ways.Store(now)
	s.observer.LogRequests(w.Logged)
	if s.budget != nil {
		s.budget.Set(w.Limits.InspectTotal)
	}
}

// timeouts are those of upstreams.
func (w *ways) timeouts() wire.Timeouts {
	return wire.Timeouts{Response: w.limits.UpstreamResponse, Idle: w.limits.UpstreamIdle}
}
