package proxy

import (
	"crypto/tls"
	"time"
)

// Ways say where requests go and how much of them is looked at. Of the limits
// those of the listener stay what they were when the server was made.
type Ways struct {
	OpenAI    string // base address of the default upstream
	Anthropic string // base address for Anthropic's API
	Limits    Limits
	WebSocket WebSocket // the Responses API over one
}

// ways are those in force.
type ways struct {
	openai, anthropic *upstream
	limits            Limits
	webSocket         WebSocket
}

// How metrics call the upstreams.
const (
	nameOpenAI    = "openai"
	nameAnthropic = "anthropic"
)

func newWays(w Ways, roots *tls.Config) (*ways, error) {
	openai, err := newUpstream(nameOpenAI, w.OpenAI, roots, w.Limits.UpstreamConnect)
	if err != nil {
		return nil, err
	}
	anthropic, err := newUpstream(nameAnthropic, w.Anthropic, roots, w.Limits.UpstreamConnect)
	if err != nil {
		return nil, err
	}
	return &ways{openai, anthropic, w.Limits, w.WebSocket}, nil
}

func (w *ways) closeIdle(t time.Time) {
	w.openai.closeIdle(t)
	w.anthropic.closeIdle(t)
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
	// Upstreams that stay keep their connections.
	now.openai, now.anthropic = before.openai.unless(now.openai), before.anthropic.unless(now.anthropic)
	s.ways.Store(now)
	s.sizeBudget(w.Limits)
	for _, u := range []*upstream{before.openai, before.anthropic} {
		if u != now.openai && u != now.anthropic {
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
