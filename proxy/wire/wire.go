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
	// Own reports whether a field of a request is addressed to the proxy, and
	// OwnAnswer whether a field of an answer is one that only the proxy writes.
	// They are not passed on.
	Own, OwnAnswer func(name []byte) bool

	// MakeRoom closes connections that nobody uses, where file descriptors have
	// run out.
	MakeRoom func()

	// Serve serves the next requests of a client whose stream has ended. It
	// returns, and closes the connection, when there are none.
	Serve func(client net.Conn)

	Log *slog.Logger
}

// Wire moves the bytes of a server's requests. It is safe for concurrent use.
type Wire struct {
	o       Options
	hop     string // see hopField
	hangups hangups
	tunnels tunnels
	streams streams
	loops   *Loops

	base     context.Context // of connecting; ends with Cut
	cancel   context.CancelFunc
	draining atomic.Bool
	stop     chan struct{}
	once     sync.Once
	watcher  sync.WaitGroup
}

// New is ready for use until Close.
func New(o Options) *Wire {
	w := &Wire{o: o, hop: newHop(), loops: startLoops(o.Log), stop: make(chan struct{})}
	w.hangups.wake = make(chan struct{}, 1)
	w.base, w.cancel = context.WithCancel(context.Background())
	// Ends when Close closes stop.
	w.watcher.Go(func() { w.hangups.run(w.stop) })
	return w
}

// Drain ends the connection of each client with its request.
func (w *Wire) Drain() { w.draining.Store(true) }

// Wait waits until the streams have ended that go on without a handler, or ctx
// ends.
func (w *Wire) Wait(ctx context.Context) error { return w.streams.wait(ctx) }

// Abandon ends every exchange in flight.
func (w *Wire) Abandon() { w.hangups.abandonAll() }

// Cut ends what no request stands behind: tunnels, and connecting. The clients'
// sides of tunnels end within Linger.
func (w *Wire) Cut() {
	w.cancel()
	w.tunnels.closeAll()
}

// InFlight is how many exchanges are watched for clients that leave, and how
// many tunnels are open.
func (w *Wire) InFlight() (exchanges, tunnels int) {
	return w.hangups.count(), w.tunnels.count()
}

// Close ends the watch for clients that leave, and the loops. Nothing is in
// flight any more.
func (w *Wire) Close() {
	w.once.Do(func() {
		close(w.stop)
		w.loops.Close()
	})
	w.watcher.Wait()
}
