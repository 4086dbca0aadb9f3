package admin

import (
	"context"
	"crypto/subtle"
	"errors"
	"net/http"
	"strings"

	"github.com/graphiti-proxy/graphiti-proxy/internal/inspector"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
)

// ErrUnknown is the error for a credential of no known person.
var ErrUnknown = errors.New("this is neither admin.token nor a known credential")

// errGuesses answers a wrong credential after too many from one address.
var errGuesses = errors.New("too many wrong tokens; try again in a second")

const maxLogin = 16 << 10 // bytes of the login form

// callerKey is the context key of the caller of an admitted request.
type callerKey struct{}

func withCaller(r *http.Request, c service.Caller) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), callerKey{}, c))
}

// callerOf returns the caller of an admitted request. Otherwise it returns a caller without
// permissions.
func callerOf(ctx context.Context) service.Caller {
	c, _ := ctx.Value(callerKey{}).(service.Caller)
	return c
}

// ownerOf returns the owner of a secret: the operator has the token, and people have the
// credentials that Options.Callers knows. It runs again for each request, so that a change
// takes effect at once. Its error is ErrUnknown, or the reason for refusing a known person.
// head is the header of a call; nil for a page.
func (s *Server) ownerOf(ctx context.Context, proof sum, head http.Header) (service.Caller, error) {
	want := sumOf(s.token.Load().text)
	if subtle.ConstantTimeCompare(proof[:], want[:]) == 1 && !s.open() {
		return service.Operator, nil
	}
	if s.o.Callers == nil {
		return service.Caller{}, ErrUnknown
	}
	return s.o.Callers(ctx, proof.digits(), head)
}

// identify is ownerOf for a secret that may be a guess. It counts wrong secrets by address.
// After too many it still accepts the right one, but no longer waits for a store: a guess
// then costs only a search in RAM.
func (s *Server) identify(r *http.Request, secret string, head http.Header) (service.Caller, error) {
	if secret == "" { // not a guess, and the most that a page can send
		return service.Caller{}, ErrUnknown
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	network := s.networkOfPeer(r)
	exhausted := s.fails.of(network).Tokens() < 1
	if exhausted {
		cancel()
	}
	caller, err := s.ownerOf(ctx, sumOf(secret), head)
	if errors.Is(err, ErrUnknown) {
		if exhausted {
			return caller, errGuesses
		}
		s.fails.of(network).Allow()
	}
	return caller, err
}

// open reports whether no token is required: then every client on this machine is the
// operator.
func (s *Server) open() bool { return s.token.Load().text == "" }

// page answers a visitor with a page, or with the login form.
func (s *Server) page(w http.ResponseWriter, r *http.Request) {
	visit, l, ok := s.visit(w, r)
	if !ok {
		return
	}
	s.limited(refuse, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/logout" {
			s.logout(w, r, l)
			return
		}
		if l, longer := l.renewed(); visit.Leave && longer {
			s.setLogin(w, r, s.token.Load().sealed(l))
		}
		s.pages.Serve(w, r, visit)
	})(w, withCaller(r, visit.Caller))
}

// visit returns the visitor of a login. If ok is false, visit has answered the request.
// The login is empty if no token is required.
func (s *Server) visit(w http.ResponseWriter, r *http.Request) (v inspector.Visit, l login, ok bool) {
	if s.open() {
		return inspector.Visit{Caller: service.Operator}, l, true
	}
	if l, ok = s.loginOf(r); !ok {
		s.askWho(w, http.StatusUnauthorized, "")
		return v, l, false
	}
	if l.Link != nil {
		return inspector.Visit{Caller: *l.Link, Leave: true}, l, true
	}
	caller, err := s.ownerOf(r.Context(), sum(l.Proof), nil)
	if err != nil {
		if errors.Is(err, ErrUnknown) { // the person is no longer registered
			s.end(r.Context(), l)
			err = errors.New("your session has ended; log in again")
		}
		s.askWho(w, http.StatusUnauthorized, err.Error())
		return v, l, false
	}
	return inspector.Visit{Caller: caller, Leave: true}, l, true
}

func (s *Server) askWho(w http.ResponseWriter, status int, problem string) {
	s.pages.ServeLogin(w, status, problem, s.o.Callers != nil, "")
}

// login serves the login form, and admits a visitor who enters a secret in it. A page of
// another site is refused earlier, so it uses up no guess.
func (s *Server) login(w http.ResponseWriter, r *http.Request) {
	before, in := s.loginOf(r)
	switch {
	case s.open(), in && reads(r):
		http.Redirect(w, r, "/", http.StatusSeeOther)
		return
	case reads(r): // a link fills in the form: a prefetched page must not begin a session
		s.pages.ServeLogin(w, http.StatusOK, "", s.o.Callers != nil, r.URL.Query().Get("link"))
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxLogin)
	secret := strings.TrimSpace(r.PostFormValue("token"))
	if secret == "" {
		s.askWho(w, http.StatusBadRequest, "enter the token")
		return
	}
	l, ok := s.opened(r.Context(), secret)
	var caller service.Caller
	var err error
	if ok && l.Link != nil {
		caller = *l.Link
	} else {
		l = begin(sumOf(secret))
		caller, err = s.identify(r, secret, nil)
	}
	if errors.Is(err, errGuesses) {
		w.Header().Set("Retry-After", "1")
		s.askWho(w, http.StatusTooManyRequests, err.Error())
		return
	}
	s.audit(withCaller(r, caller), &service.Entry{What: "log in", Who: caller.Name}, err)
	switch {
	case errors.Is(err, ErrUnknown):
		s.askWho(w, http.StatusUnauthorized, err.Error())
	case err != nil:
		s.askWho(w, http.StatusForbidden, err.Error())
	default:
		if in {
			s.end(r.Context(), before)
		}
		s.setLogin(w, r, s.token.Load().sealed(l))
		http.Redirect(w, r, "/", http.StatusSeeOther)
	}
}

func (s *Server) logout(w http.ResponseWriter, r *http.Request, l login) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		refuse(w, http.StatusMethodNotAllowed, "to log out is a POST")
		return
	}
	s.end(r.Context(), l)
	s.setLogin(w, r, "")
	http.Redirect(w, r, "/login", http.StatusSeeOther)
}
