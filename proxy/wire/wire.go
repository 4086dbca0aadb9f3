package wire

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"
)

// Timeouts limits how long upstreams and clients may stay silent.
type Timeouts struct {
	Response time.Duration // for the head of an answer
	Idle     time.Duration // between bytes of an answer's body, and for one write on either side
	Body     time.Duration // between bytes of a request's body
}

// Options configures a Wire. All fields are required.
type Options struct {
	// Own reports whether a request's field is addressed to the proxy, and OwnAnswer
	// whether only the proxy writes an answer's field. Such fields are not forwarded.
	Own, OwnAnswer func(name []byte) bool

	// MakeRoom closes idle connections when file descriptors have run out.
	MakeRoom func()

	Log *slog.Logger
}

// Wire moves the bytes of a server's requests. It is safe for concurrent use.
type Wire struct {
	o       Options
	hangups hangups

	base     context.Context // for tunnels and dialing; canceled by Cut
	cut      context.CancelFunc
	draining atomic.Bool
}

// New returns a Wire.
func New(o Options) *Wire {
	w := &Wire{o: o}
	w.base, w.cut = context.WithCancel(context.Background())
	return w
}

// Drain makes each client's connection end with its current request.
func (w *Wire) Drain() { w.draining.Store(true) }

// Abandon ends every exchange in flight.
func (w *Wire) Abandon() { w.hangups.abandonAll() }

// Cut ends tunnels and connection attempts, which are not tied to a request. The
// clients' sides of tunnels end within Linger.
func (w *Wire) Cut() { w.cut() }
