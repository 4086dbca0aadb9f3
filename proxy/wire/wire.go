package wire

import (
	"context"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Timeouts bound the silence of upstreams.
type Timeouts struct {
	Response time.Duration // for the head of an answer
	Idle     time.Duration // longest silence within a body, either side
}

// Options configures a Wire. All fields are required.
type Options struct {
	// Own reports whether a request's field is addressed to the proxy, and OwnAnswer
	// whether only the proxy writes an answer's field. Such fields are not passed on.
	Own, OwnAnswer func(name []byte) bool

	// MakeRoom closes idle connections when file descriptors have run out.
	MakeRoom func()

	// Serve serves the next requests of a client whose stream has ended. When there
	// are none it closes the connection and returns.
	Serve func(client net.Conn)

	Log *slog.Logger
}

// Wire moves the bytes of a server's requests. It is safe for concurrent use.
type Wire struct {
	o       Options
	hop     string // see hopField
	hangups hangups
	tunnels atomic.Int64 // that are open
	streams counter      // those that go on without a handler
	loops   *loops

	base     context.Context // of what belongs to no request; ends with Cut
	cut      context.CancelFunc
	draining atomic.Bool
	stop     context.CancelFunc // ends watcher
	watcher  sync.WaitGroup
}

// New returns a Wire, which is ready until Close.
func New(o Options) *Wire {
	w := &Wire{o: o, hop: newHop(), loops: startLoops(o.Log)}
	w.hangups.wake = make(chan struct{}, 1)
	w.base, w.cut = context.WithCancel(context.Background())
	open, stop := context.WithCancel(context.Background())
	w.stop = stop
	// Ends with Close.
	w.watcher.Go(func() { w.hangups.run(open, w.loops.sweep) })
	return w
}

// Drain ends the connection of each client with its request.
func (w *Wire) Drain() { w.draining.Store(true) }

// Wait waits until the streams without a handler have ended, or ctx ends.
func (w *Wire) Wait(ctx context.Context) error { return w.streams.wait(ctx) }

// Abandon ends every exchange in flight.
func (w *Wire) Abandon() { w.hangups.abandonAll() }

// Cut ends what belongs to no request: tunnels, and attempts to connect. The clients'
// sides of tunnels end within Linger.
func (w *Wire) Cut() { w.cut() }

// InFlight is how many exchanges are watched for clients that leave, and how
// many tunnels are open.
func (w *Wire) InFlight() (exchanges, tunnels int) {
	return w.hangups.count(), int(w.tunnels.Load())
}

// Close ends the watch for clients that leave, and the loops. Nothing may be in flight.
func (w *Wire) Close() {
	w.stop()
	w.watcher.Wait()
	w.loops.close()
}
