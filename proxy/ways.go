package proxy

import (
	"crypto/tls"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/dialect/registry"
)

// Ways say where requests go and how much of them is looked at. Of the limits
// those of the listener stay what they were when the server was made.
type Ways struct {
	Upstreams map[string]string // base addresses, by the names that the registry of dialects has
	Limits    Limits
	WebSocket WebSocket // the Responses API over one
}

// ways are those in force.
type ways struct {
	upstreams map[string]*upstream // one for each name that the registry has
	limits    Limits
	webSocket WebSocket
}

func newWays(w Ways, roots *tls.Config) (*ways, error) {
	now := &ways{upstreams: make(map[string]*upstream), limits: w.Limits, webSocket: w.WebSocket}
	for _, name := range registry.Upstreams {
		u, err := newUpstream(name, w.Upstreams[name], roots, w.Limits.UpstreamConnect)
		if err != nil {
			return nil, err
		}
		now.upstreams[name] = u
	}
	return now, nil
}

func (w *ways) closeIdle(t time.Time) {
	for _, u := range w.upstreams {
		u.closeIdle(t)
	}
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
	for name, u := range before.upstreams {
		now.upstreams[name] = u.unless(now.upstreams[name]) // those that stay keep their connections
	}
	s.ways.Store(now)
	s.sizeBudget(w.Limits)
	for name, u := range before.upstreams {
		if u != now.upstreams[name] {
			u.retire()
		}
	}
	return nil
}

// sizeBudget is called when the limits change.
func (s *Server) sizeBudget(l Limits) {
	if s.budget != nil {
		s.budget.Set(l.InspectTotal)
	}
}

// unless returns the upstream itself unless the other is another one.
func (u *upstream) unless(other *upstream) *upstream {
	if u.base.String() == other.base.String() && u.timeout == other.timeout {
		return u
	}
	return other
}

// retire closes the unused connections, now and as they are given back.
func (u *upstream) retire() {
	u.mu.Lock()
	u.retired = true
	u.mu.Unlock()
	u.closeIdle(time.Now().Add(time.Hour))
}
