package admin

import (
	"cmp"
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

	"github.com/graphiti-proxy/graphiti-proxy/internal/inspector"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
)

// Options configures a Server. Host, Metrics, Log and Audit are required.
type Options struct {
	Listen string // host:port
	Token  string // empty: no token is asked for, which suits loopback only

	// Callers finds whom a credential proves, by its SHA-256 in hex digits. Its error is
	// ErrUnknown, or says to the person why they are not let in. It may wait for a
	// store until ctx ends, and it keeps nothing. head is that of a call, in which a
	// trusted gateway names a person; nil on pages. nil: only the token lets anybody in.
	Callers func(ctx context.Context, fingerprint string, head http.Header) (service.Caller, error)

	Proxies []netip.Prefix // reverse proxies that are believed about their clients

	Host    *service.Host // what operations run on
	Metrics http.Handler
	// Instance names the data directory that the proxy owns: calls that are
	// meant for another are refused. Everybody may know it. Empty: none.
	Instance string

	// Secret is what it proves itself with to commands. nil: it cannot.
	Secret []byte

	TLS   *tls.Config // nil: none
	Log   *slog.Logger
	Audit *slog.Logger // gets a line for each look at, and change of, what is remembered
}

// Server answers operators, and people who ask for what is theirs.
type Server struct {
	o      Options
	ln     net.Listener
	http   *http.Server
	pages  *inspector.Pages
	conns  *conns
	calls  *limits[service.Caller] // calls and pages, by keyOf
	places *places
	fails  *limits[netip.Prefix]  // wrong credentials
	token  atomic.Pointer[string] // empty: none is asked for

	sessions *sessions
	seal     seal
	own      string // the cookie of everybody while no token is asked for
}

// SetToken changes what is asked for, from the next call on.
func (s *Server) SetToken(token string) { s.token.Store(&token) }

// New binds the address.
func New(o Options) (*Server, error) {
	ln, err := net.Listen("tcp", o.Listen)
	if err != nil {
		return nil, fmt.Errorf("listen for administration: %w; choose another address with admin.listen, or off", err)
	}
	if o.TLS != nil {
		ln = tls.NewListener(ln, o.TLS)
	}
	s := &Server{
		o: o, ln: ln, conns: newConns(o.Proxies), places: newPlaces(),
		calls: newLimits[service.Caller](callsPerSecond, 2*callsPerSecond), fails: newLimits[netip.Prefix](guessesPerSecond, 4*guessesPerSecond),
		sessions: newSessions(), seal: newSeal(),
	}
	s.own = s.seal.visit(random())
	s.SetToken(o.Token)
	if s.pages, err = inspector.New(inspector.Options{Host: o.Host, Log: o.Log, Audit: s.auditPage}); err != nil {
		return nil, errors.Join(err, ln.Close())
	}
	s.http = &http.Server{
		Handler:           s.routes(),
		ConnContext:       s.conns.add,
		ConnState:         s.conns.change,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       patience, // where no caller is let in; see paced
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       10 * time.Second,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(o.Log.Handler(), slog.LevelDebug),
	}
	return s, nil
}

// routes serves the endpoints, and the inspector wherever there is none.
func (s *Server) routes() *http.ServeMux {
	mux := http.NewServeMux()
	for _, e := range s.endpoints() {
		serve := e.serve
		if e.owned {
			serve = s.meant(serve)
		}
		if !e.open {
			serve = s.guard(s.limited(writeError, serve))
		}
		mux.HandleFunc(e.method+" "+e.path, serve)
		mux.HandleFunc(e.path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Allow", strings.Replace(e.method, "GET", "GET, HEAD", 1))
			http.Error(w, http.StatusText(http.StatusMethodNotAllowed), http.StatusMethodNotAllowed)
		})
	}
	mux.HandleFunc("/api/", http.NotFound)
	mux.HandleFunc("/static/", s.static(s.pages.ServeStatic))
	mux.HandleFunc("/login", s.entrance(s.login))
	mux.HandleFunc("/", s.entrance(s.page))
	return mux
}

// Addr is the address that operators connect to.
func (s *Server) Addr() net.Addr { return s.ln.Addr() }

// Serve serves until Shutdown, and then returns nil.
func (s *Server) Serve() error {
	if err := s.http.Serve(s.ln); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve administration: %w", err)
	}
	return nil
}

// Shutdown stops the server, at the latest when ctx ends.
func (s *Server) Shutdown(ctx context.Context) error {
	err := s.http.Shutdown(ctx)
	_ = s.ln.Close() // when Serve was never called
	if err != nil {
		_ = s.http.Close()
		return fmt.Errorf("stop administration: %w", err)
	}
	return nil
}

// healthz is true while the process lives.
// Who is healthy it says too, for commands that look for a certain proxy.
func (s *Server) healthz(w http.ResponseWriter, r *http.Request) {
	s.prove(w, r)
	w.Header().Set(InstanceHeader, cmp.Or(s.o.Instance, NoInstance))
	_, _ = w.Write([]byte("ok\n"))
}

// readyz is true when requests can be forwarded. Trouble with the memory is
// told in the body and never makes the proxy unready: it can still forward. The
// memory is not asked: one that hangs would make the answer late, and everybody
// may call this.
func (s *Server) readyz(w http.ResponseWriter, r *http.Request) {
	st := s.o.Host.Status(r.Context(), false)
	code := http.StatusOK
	if !st.Ready {
		code = http.StatusServiceUnavailable
	}
	writeJSON(w, code, map[string]any{"ready": st.Ready, "memory": st.Memory.Public()})
}
