package inspector

import (
	"log/slog"
	"net/http"

	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
)

// Options configures Pages. All are required.
type Options struct {
	Host *service.Host
	Log  *slog.Logger

	// Audit writes the audit line of one call of an operation for a visitor; err is its
	// error, nil where it succeeded.
	Audit func(r *http.Request, e *service.Entry, err error)
}

// Visit is one request of somebody who was let in. For any method but GET and HEAD,
// whoever lets them in has checked Origin, Host and the CSRF token.
type Visit struct {
	Caller service.Caller
	CSRF   string // forms send it as csrf, scripts as X-CSRF-Token
	Leave  bool   // they logged in, and can log out
}

// Pages serves the inspector. It is safe for concurrent use.
type Pages struct{ o Options }

// New returns the pages.
func New(o Options) (*Pages, error) { return &Pages{o}, nil }

// ServeStatic serves what is below /static/: styles, scripts, icons. Anybody may have it.
func (p *Pages) ServeStatic(w http.ResponseWriter, r *http.Request) { http.NotFound(w, r) }

// Serve serves a page, or does what a form of one asks for.
func (p *Pages) Serve(w http.ResponseWriter, r *http.Request, v Visit) { http.NotFound(w, r) }

// ServeLogin serves the login form, which posts token and csrf to /login. problem says why
// the last try failed; multi says that people may log in with a credential of their own.
func (p *Pages) ServeLogin(w http.ResponseWriter, status int, problem, csrf string, multi bool) {
	w.WriteHeader(status)
}
