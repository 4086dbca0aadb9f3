package proxy

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"math"
	"net"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/graphiti-proxy/graphiti-proxy/internal/budget"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
	"github.com/graphiti-proxy/graphiti-proxy/internal/memo"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/identity"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/observe"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/wire"
)

// Limits limits the resources for clients and upstreams. All fields except PerAddress,
// Allow and Keys are required.
type Limits struct {
	InspectBytes     int                   // longest inspected body; longer ones are relayed without memory
	InspectTotal     int                   // most bytes inspected at the same time; bodies beyond it are relayed without memory
	Messages         int                   // most messages in a body; a body with more has no memory
	HeaderBytes      int                   // size of a request's head
	HeaderTimeout    time.Duration         // for a request's head
	IdleTimeout      time.Duration         // for the next request on an open connection
	BodyTimeout      time.Duration         // longest pause of a client within a request's body
	Connections      int                   // concurrent client connections; more get status 503
	PerAddress       int                   // concurrent connections from one address; 0 if unlimited
	Allow            []netip.Prefix        // networks of clients that are served, besides this machine; all if empty
	Rates            Rates                 // of each person or credential
	Keys             identity.Fingerprints // a client must show one of them; nil if it need not
	UpstreamConnect  time.Duration         // for connecting, including TLS
	UpstreamResponse time.Duration         // for the head of an answer
	UpstreamIdle     time.Duration         // longest pause of an upstream within a body, and longest write to a client
}

// Options configures a Server.
type Options struct {
	Listen    string // host:port
	Routes    Routes
	TLS       *tls.Config // for upstreams; nil for the system's roots
	Memory    Memory
	Memo      *memo.Memo  // notes about current conversations; nil for a new one
	ServerTLS *tls.Config // for clients; nil for no TLS

	// Budget limits the bytes that are inspected at the same time. SetRoutes sets its
	// size. If it is nil, there is no limit.
	Budget *budget.Budget

	Meter  metric.Meter
	Tracer trace.Tracer // nil for no spans
	Log    *slog.Logger // may get a warning for each request
}

// Server is the client side of the proxy.
type Server struct {
	*decider // decides about the memory of requests

	routes atomic.Pointer[routes]
	memory atomic.Pointer[Memory]
	budget *budget.Budget // of inspected bytes

	roots *tls.Config // for upstreams

	observer *observe.Observer
	rates    rates

	fast     *fasthttp.Server
	listener net.Listener
	tls      *tls.Config
	clients  *wire.ClientConns
	wire     *wire.Wire

	cancel context.CancelFunc
	ending atomic.Bool
}

// New binds the address and returns a server that is ready to serve. Shutdown must be
// called even if Serve was not.
func New(o Options) (*Server, error) {
	o.TLS = cmp.Or(o.TLS, &tls.Config{MinVersion: tls.VersionTLS12})
	w, err := newRoutes(o.Routes, o.TLS)
	if err != nil {
		return nil, err
	}
	observer, err := observe.New(o.Meter, o.Tracer, o.Log)
	if err != nil {
		return nil, err
	}
	o.Memo = cmp.Or(o.Memo, memo.New(memo.Size))
	ln, err := net.Listen("tcp", o.Listen)
	if err != nil {
		return nil, fmt.Errorf("listen for clients: %w; choose another address with listen", err)
	}
	s := &Server{
		roots: o.TLS,
		tls:   o.ServerTLS,

		budget: o.Budget,

		observer: observer,
		listener: ln,
	}
	s.apply(w, o.Routes)
	s.memory.Store(&o.Memory)
	base, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	s.decider = &decider{memo: o.Memo, base: base, log: o.Log}
	room := wire.RoomForClients()
	s.clients = wire.NewClientConns(o.Routes.Limits.Connections, o.Routes.Limits.PerAddress, room)
	if wire.TooFew(room, o.Routes.Limits.Connections) {
		s.log.Info("there are file descriptors for fewer clients than limits.connections", "clients", room, "remedy", wire.MoreFiles)
	}
	s.wire = wire.New(wire.Options{Own: ours, OwnAnswer: onlyOurs, MakeRoom: s.makeRoom, Log: o.Log})
	s.fast = &fasthttp.Server{
		Handler:      s.serve,
		ErrorHandler: refuse,
		// The handler reads bodies, because it knows how much to read. If it leaves a rest,
		// it closes the connection. The size makes fasthttp copy only the first byte.
		StreamRequestBody:            true,
		MaxRequestBodySize:           1,
		DisablePreParseMultipartForm: true,
		HeaderReceived:               s.bodyPatience,
		// fasthttp's own answer must be written, and discarded, before the next request
		// begins: see clientConn in wire.
		ReduceMemoryUsage:     true,
		ConnState:             wire.Follow,
		ReadBufferSize:        o.Routes.Limits.HeaderBytes,
		WriteBufferSize:       1 << 10,
		ReadTimeout:           o.Routes.Limits.HeaderTimeout,
		IdleTimeout:           o.Routes.Limits.IdleTimeout,
		Concurrency:           math.MaxInt32, // wire.ClientConns limits the connections
		NoDefaultServerHeader: true,
		NoDefaultDate:         true,
		NoDefaultContentType:  true,
		SecureErrorLogMessage: true,
		Logger:                log.New(io.Discard, "", 0), // it would contain parts of requests
	}
	return s, nil
}

// currentMemory returns the current settings and services of the memory.
func (s *Server) currentMemory() *Memory { return s.memory.Load() }

// Set changes the memory's settings for later requests. The services must stay the same.
func (s *Server) Set(m Memory) { s.memory.Store(&m) }

// Observer returns the observer of the requests.
func (s *Server) Observer() *observe.Observer { return s.observer }

// Addr returns the address for clients.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// Serve serves until Shutdown, and then returns nil.
func (s *Server) Serve() error {
	err := s.fast.Serve(s.newListener())
	if err != nil && !s.stopping() {
		return fmt.Errorf("serve clients: %w", err)
	}
	return nil
}

// cutTime is the time for connections to close after Cut, before BreakAll closes them.
const cutTime = 2 * wire.Linger

// Shutdown stops accepting connections and lets running requests finish until ctx ends;
// then it cuts them off, and returns ctx's error. It returns at most twice cutTime later,
// whatever clients and upstreams do. It may be called again.
func (s *Server) Shutdown(ctx context.Context) error {
	s.ending.Store(true)
	s.wire.Drain()
	err := s.fast.ShutdownWithContext(ctx)
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		s.wire.Abandon()
	}
	s.cancel()
	s.wire.Cut()
	if !s.clients.Wait(cutTime) { // a write to a client that does not read takes longer
		s.clients.BreakAll()
		s.clients.Wait(cutTime)
	}
	_ = s.listener.Close() // when Serve was never called
	s.routing().upstreams.CloseIdle(time.Now().Add(time.Hour))
	if err != nil {
		return fmt.Errorf("wait for running requests: %w", err)
	}
	return nil
}

func (s *Server) stopping() bool { return s.ending.Load() }

// newListener returns a listener for clients' connections.
func (s *Server) newListener() *wire.Listener {
	return wire.NewListener(s.listener, wire.ListenerOptions{
		Conns:    s.clients,
		TLS:      s.tls,
		Allow:    s.routing().limits.Allow,
		Timeouts: func() wire.Timeouts { return s.routing().timeouts() },
		MakeRoom: s.makeRoom,
		Log:      s.log,
	})
}

// makeRoom closes idle connections to upstreams and clients.
func (s *Server) makeRoom() {
	s.routing().upstreams.CloseIdle(time.Now().Add(time.Hour))
	s.clients.MakeRoom()
}

// bodyPatience replaces the head's timeout by the body's, because fasthttp reads the
// beginning of a body itself.
func (s *Server) bodyPatience(*fasthttp.RequestHeader) fasthttp.RequestConfig {
	return fasthttp.RequestConfig{ReadTimeout: s.routing().limits.BodyTimeout}
}

// refuse answers an invalid request.
func refuse(ctx *fasthttp.RequestCtx, err error) {
	status, message := fasthttp.StatusBadRequest, "graphiti-proxy: this is not a valid HTTP request"
	var small *fasthttp.ErrSmallBuffer
	switch {
	case errors.As(err, &small):
		status = fasthttp.StatusRequestHeaderFieldsTooLarge
		message = "graphiti-proxy: the request's headers are larger than limits.header_bytes"
	case wire.IsTimeout(err):
		status, message = fasthttp.StatusRequestTimeout, "graphiti-proxy: the request did not arrive in time"
	}
	ctx.SetStatusCode(status)
	ctx.SetContentType("application/json")
	ctx.SetConnectionClose()
	ctx.SetBody(dialect.OpenAIError(dialect.Failure{Status: status, Type: "invalid_request_error", Message: message}))
}
