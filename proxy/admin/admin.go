package admin

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/net/netutil"

	"github.com/graphiti-proxy/graphiti-proxy/internal/inspector"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
)

// Options configures a Server. Host, Metrics, Log and Audit are required.
type Options struct {
	Listen string // host:port
	Token  string // if empty, no token is required, which suits loopback only

	// Callers returns the caller that a credential proves, by the SHA-256 of the credential
	// in hex digits. Its error is ErrUnknown, or explains the refusal to the person. It may
	// wait for a store until ctx ends, and stores nothing. head is the header of a call, in
	// which a trusted gateway names a person; it is nil on pages. Without Callers, only the
	// token lets a caller in.
	Callers func(ctx context.Context, fingerprint string, head http.Header) (service.Caller, error)

	Proxies []netip.Prefix // reverse proxies with trusted X-Forwarded headers

	Version string        // of the program
	Host    *service.Host // runs operations

	// Project is mcpserver.Options.Project.
	Project func(dir string) (key string, err error)

	Metrics http.Handler
	DataDir string // for SocketFile; "" without a data directory

	TLS   *tls.Config // nil without TLS
	Log   *slog.Logger
	Audit *slog.Logger // gets a line for each read and each change of memory
}

// Server answers operators, and people about their own data.
type Server struct {
	o      Options
	ln     net.Listener
	socket net.Listener // for commands; nil without one
	http   *http.Server
	pages  *inspector.Pages
	calls  *limits[service.Caller] // calls and pages, by keyOf
	places *places
	fails  *limits[netip.Prefix] // wrong credentials
	token  atomic.Pointer[token]
}

// SetToken changes the required token, from the next call on.
func (s *Server) SetToken(text string) { s.token.Store(newToken(text)) }

// New binds the address.
func New(o Options) (*Server, error) {
	ln, err := net.Listen("tcp", o.Listen)
	if err != nil {
		return nil, fmt.Errorf("listen for administration: %w; choose another address with admin.listen, or off", err)
	}
	ln = netutil.LimitListener(ln, maxConns)
	if o.TLS != nil {
		ln = tls.NewListener(ln, o.TLS)
	}
	s := &Server{
		o: o, ln: ln, places: newPlaces(),
		calls: newLimits[service.Caller](callsPerSecond, 2*callsPerSecond), fails: newLimits[netip.Prefix](guessesPerSecond, 4*guessesPerSecond),
	}
	s.SetToken(o.Token)
	s.pages = inspector.New(inspector.Options{Host: o.Host, Log: o.Log, Audit: s.auditPage})
	if o.DataDir != "" {
		if s.socket, err = listenToCommands(o.DataDir); err != nil {
			o.Log.Warn("commands cannot find this proxy by its data_dir", "error", err)
		}
	}
	s.http = &http.Server{
		ConnContext:       fromSocket,
		Handler:           s.contained(s.routes()),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second, // for requests without a caller; see limited
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       10 * time.Second,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(o.Log.Handler(), slog.LevelDebug),
	}
	return s, nil
}

// routes serves the endpoints, and the inspector at all other paths.
func (s *Server) routes() *http.ServeMux {
	mux := http.NewServeMux()
	for _, e := range s.endpoints() {
		serve := e.serve
		if !e.open {
			serve = s.guard(s.limited(writeError, serve))
		}
		mux.HandleFunc(e.method+" "+e.path, serve)
		mux.HandleFunc(e.path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Allow", strings.Replace(e.method, "GET", "GET, HEAD", 1))
			http.Error(w, http.StatusText(http.StatusMethodNotAllowed), http.StatusMethodNotAllowed)
		})
	}
	tools := s.guard(s.limited(writeError, s.mcp()))
	mux.HandleFunc("/mcp", tools)
	mux.HandleFunc("/mcp/{$}", tools)
	mux.HandleFunc("/api/", http.NotFound)
	mux.HandleFunc("GET /static/", s.static)
	mux.HandleFunc("/login", s.entrance(s.login))
	mux.HandleFunc("/", s.entrance(s.page))
	return mux
}

// Addr returns the address of the listener.
func (s *Server) Addr() net.Addr { return s.ln.Addr() }

// Serve serves until Shutdown, and then returns nil.
func (s *Server) Serve() error {
	if s.socket != nil {
		go func() { _ = s.http.Serve(s.socket) }() // ends with Shutdown
	}
	if err := s.http.Serve(s.ln); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve administration: %w", err)
	}
	return nil
}

// Shutdown stops the server, at the latest when ctx ends.
func (s *Server) Shutdown(ctx context.Context) error {
	err := s.http.Shutdown(ctx)
	_ = s.ln.Close() // needed if Serve was never called
	if s.socket != nil {
		_ = s.socket.Close()
	}
	if err != nil {
		_ = s.http.Close()
		return fmt.Errorf("stop administration: %w", err)
	}
	return nil
}

// healthz answers 200 while the process lives.
func (s *Server) healthz(w http.ResponseWriter, _ *http.Request) {
	_, _ = w.Write([]byte("ok\n"))
}

// readyz answers 200 if requests can be forwarded. Trouble with the memory is in the body,
// and never makes the proxy unready: it can still forward. readyz does not call the memory:
// one that hangs would delay the answer, and the endpoint is public.
func (s *Server) readyz(w http.ResponseWriter, r *http.Request) {
	st := s.o.Host.Status(r.Context(), false)
	code := http.StatusOK
	if !st.Ready {
		code = http.StatusServiceUnavailable
	}
	writeJSON(w, code, map[string]any{"ready": st.Ready, "memory": st.Memory.Public()})
}
