package admin

import (
	"errors"
	"net"
	"net/http"
	"strings"

	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
)

// guard admits callers with the token or with a credential of their own. It accepts no
// cookie: a page cannot make a browser send the required header. Without a token, which is
// on this machine only, it keeps out web pages in a visitor's browser: those of another
// origin, and those under a host name that they have pointed here. It refuses a request
// from such a page before it counts it as a call or as a guess: a page must not use up the
// limits of its visitor's programs.
func (s *Server) guard(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if callerOf(r.Context()).Operator { // through the socket
			next(w, r)
			return
		}
		if foreign(r) {
			writeError(w, http.StatusForbidden, "the admin side rejects requests from other sites' pages")
			return
		}
		if s.open() {
			if !local(r.Host) {
				writeError(w, http.StatusForbidden, "without a token, the admin side serves only programs on this machine, by its address; set admin.token for others")
				return
			}
			next(w, withCaller(r, service.Operator))
			return
		}
		shown, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		caller, err := s.identify(r, shown, r.Header)
		switch {
		case errors.Is(err, errGuesses):
			tooMany(w, writeError, err.Error())
		case errors.Is(err, ErrUnknown):
			w.Header().Set("WWW-Authenticate", `Bearer realm="graphiti-proxy"`)
			writeError(w, http.StatusUnauthorized, "the admin side needs admin.token, as Authorization: Bearer …")
		case err != nil:
			writeError(w, http.StatusForbidden, err.Error())
		default:
			next(w, withCaller(r, caller))
		}
	}
}

// local reports whether a Host header names this machine and nothing else.
func local(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = host
	}
	ip := net.ParseIP(strings.Trim(name, "[]"))
	return name == "localhost" || ip != nil && ip.IsLoopback()
}
