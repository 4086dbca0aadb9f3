package admin

import (
	"errors"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"

	"golang.org/x/time/rate"

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

// limited refuses calls when there are too many.
func (s *Server) limited(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		calls := s.calls
		if !callerOf(r.Context()).Operator {
			calls = s.visits // people do not use up what operators' programs may do
		}
		if !calls.Allow() {
			tooMany(w)
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
		peer := peerOf(r)
		if !s.fails.mayGuess(peer) {
			tooMany(w)
			return
		}
		shown, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		caller, err := s.whose(r.Context(), sumOf(shown))
		switch {
		case errors.Is(err, ErrUnknown) || shown == "":
			if shown != "" { // none is no guess, and a page can send none
				s.fails.guessed(peer)
			}
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

func tooMany(w http.ResponseWriter) {
	w.Header().Set("Retry-After", "1")
	writeError(w, http.StatusTooManyRequests, "too many calls; try again in a second")
}

const (
	// guessesPerSecond is how many wrong tokens an address may send.
	guessesPerSecond = 5

	// maxGuessers bounds the addresses that are told apart.
	maxGuessers = 4096
)

// guesses counts wrong tokens by address, so that who guesses keeps out nobody
// else. It is safe for concurrent use.
type guesses struct {
	mu     sync.Mutex // guards by
	by     map[netip.Prefix]*rate.Limiter
	others *rate.Limiter // of all addresses together that are too many
}

func newGuesses() *guesses {
	return &guesses{by: make(map[netip.Prefix]*rate.Limiter), others: newGuesser()}
}

func newGuesser() *rate.Limiter { return rate.NewLimiter(guessesPerSecond, 4*guessesPerSecond) }

// mayGuess reports whether what an address sends is looked at.
func (g *guesses) mayGuess(peer string) bool { return g.of(peer, false).Tokens() >= 1 }

// guessed notes that it was wrong.
func (g *guesses) guessed(peer string) { g.of(peer, true).Allow() }

// of finds the count of an address, which is made where keep is set.
func (g *guesses) of(peer string, keep bool) *rate.Limiter {
	ip, err := netip.ParseAddr(peer)
	if err != nil {
		return g.others
	}
	bits := ip.Unmap().BitLen()
	if bits > 64 {
		bits = 64 // which is one network's
	}
	network, err := ip.Unmap().WithZone("").Prefix(bits)
	if err != nil {
		return g.others
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if l, ok := g.by[network]; ok {
		return l
	}
	if len(g.by) >= maxGuessers {
		for n, l := range g.by {
			if l.Tokens() >= float64(l.Burst()) { // it has not guessed for a while
				delete(g.by, n)
			}
		}
	}
	if len(g.by) >= maxGuessers {
		return g.others
	}
	l := newGuesser()
	if keep {
		g.by[network] = l
	}
	return l
}

// peerOf is the address that a call came from.
func peerOf(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
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
