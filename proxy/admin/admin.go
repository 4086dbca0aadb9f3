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
	"sync/atomic"
	"time"

	"golang.org/x/net/netutil"
	"golang.org/x/time/rate"

	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
)

// Options configures a Server. Host, Metrics, Log and Audit are required.
type Options struct {
	Listen string // host:port
	Token  string // empty: no token is asked for, which suits loopback only

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

// maxConnections bounds the connections at the same time, so that they leave
// file descriptors to the clients. More wait to be accepted; silent ones are
// closed when their head does not arrive.
const maxConnections = 32

// noDeadline is none.
var noDeadline time.Time

// Server answers operators.
type Server struct {
	o     Options
	ln    net.Listener
	http  *http.Server
	calls *rate.Limiter          // of those who are let in
	fails *guesses               // of the others
	token atomic.Pointer[string] // empty: none is asked for
}

// SetToken changes what is asked for, from the next call on.
func (s *Server) SetToken(token string) { s.token.Store(&token) }

// callsPerSecond is how many calls of the API are served, for all together who
// know the token: more than programs need.
const callsPerSecond = 100

// New binds the address.
func New(o Options) (*Server, error) {
	ln, err := net.Listen("tcp", o.Listen)
	if err != nil {
		return nil, fmt.Errorf("listen for administration: %w; choose another address with admin.listen, or off", err)
	}
	ln = netutil.LimitListener(ln, maxConnections)
	if o.TLS != nil {
		ln = tls.NewListener(ln, o.TLS)
	}
	s := &Server{o: o, ln: ln, calls: rate.NewLimiter(callsPerSecond, 2*callsPerSecond), fails: newGuesses()}
	s.SetToken(o.Token)
	mux := http.NewServeMux()
	for _, e := range s.endpoints() {
		serve := e.serve
		if e.owned {
			serve = s.meant(serve)
		}
		if !e.open {
			serve = s.guard(s.limited(serve))
		}
		mux.HandleFunc(e.method+" "+e.path, serve)
	}
	s.http = &http.Server{
		Handler:           mux,
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       30 * time.Second,
		WriteTimeout:      time.Minute,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(o.Log.Handler(), slog.LevelDebug),
	}
	return s, nil
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
