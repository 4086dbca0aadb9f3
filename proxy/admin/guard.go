package admin

import (
	"errors"
	"net"
	"net/http"
	"slices"
	"strings"

	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
)

// InstanceHeader names a data directory: the proxy's in answers to /healthz, and
// in calls the one that is meant.
const (
	InstanceHeader = "X-Graphiti-Instance"
	NoInstance     = "none" // the proxy owns no data directory
)

// meant refuses calls that are meant for the owner of another data directory:
// what they would show or delete is somebody else's.
func (s *Server) meant(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if asked := r.Header.Get(InstanceHeader); asked != "" && asked != s.o.Instance {
			writeError(w, http.StatusMisdirectedRequest, "this proxy does not own the data_dir that is meant")
			return
		}
		next(w, r)
	}
}

// guard lets only those in who show the token, or a credential of their own. No cookie
// counts: a page cannot make a browser send what is asked for. Where no token is set,
// which is on this machine only, a web page must not get in through its visitor's
// browser: neither from another origin, nor under a name of its own that it has pointed
// here. What a browser sends for a page of another site is refused before it counts as a
// call or as a guess: a page is not to use up what its visitor's programs may do.
func (s *Server) guard(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if crossSite(r) {
			writeError(w, http.StatusForbidden, "the admin side does not answer to pages of other sites")
			return
		}
		if s.open() {
			if origin := r.Header.Get("Origin"); !local(r.Host) || origin != "" && !s.ours(origin, r.Host) {
				writeError(w, http.StatusForbidden, "the admin side without a token answers to programs on this machine only, by its address; set admin.token for others")
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
			writeError(w, http.StatusUnauthorized, "the admin side needs the token that admin.token names, as Authorization: Bearer …")
		case err != nil:
			writeError(w, http.StatusForbidden, err.Error())
		default:
			next(w, withCaller(r, caller))
		}
	}
}

// crossSite reports whether a browser says that a page of another site asks.
func crossSite(r *http.Request) bool {
	return slices.ContainsFunc(r.Header.Values("Sec-Fetch-Site"), func(v string) bool {
		return strings.EqualFold(strings.TrimSpace(v), "cross-site")
	})
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
