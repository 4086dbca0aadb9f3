package admin

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"net"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
)

const (
	maxSessions = 1000 // of operators, and likewise of people
	maxOfCaller = 50
	// A session ends idleFor after its last request, or longest after its start.
	idleFor = 30 * time.Minute
	longest = 12 * time.Hour
)

// sum is the SHA-256 of a secret. All sums have the same length, so a comparison leaks
// nothing, and a sum read from RAM lets no visitor in.
type sum [sha256.Size]byte

func sumOf(secret string) sum { return sha256.Sum256([]byte(secret)) }

// digits returns the sum of a credential as its fingerprint.
func (s sum) digits() string { return hex.EncodeToString(s[:]) }

// session is one visitor with a login. It does not contain their permissions: each request
// determines these again.
type session struct {
	proof sum            // of the secret of the login
	of    service.Caller // result of keyOf
	begun time.Time
	last  atomic.Pointer[time.Time]
}

// sessions are the visitors with a login. They are in RAM only: a restart ends them all. The least
// used ones end if there are too many: any credential can begin sessions, but ends no operator's.
// They are safe for concurrent use.
type sessions struct{ operators, people *lru.Cache[sum, *session] }

func newSessions() *sessions {
	operators, _ := lru.New[sum, *session](maxSessions) // fails only for a negative size
	people, _ := lru.New[sum, *session](maxSessions)
	return &sessions{operators, people}
}

// begin starts a session, and returns its id. Only the sum of the id is stored. A caller with too
// many loses the least used ones.
func (t *sessions) begin(proof sum, c service.Caller) (id string) {
	now, to := time.Now(), t.people
	if c.Operator {
		to = t.operators
	}
	one, own := &session{proof: proof, of: keyOf(c), begun: now}, 1
	for _, key := range slices.Backward(to.Keys()) {
		if other, ok := to.Peek(key); ok && other.of == one.of {
			if own++; own > maxOfCaller {
				to.Remove(key)
			}
		}
	}
	id = rand.Text()
	one.last.Store(&now)
	to.Add(sumOf(id), one)
	return id
}

// of returns the sum of the secret that the visitor of a session logged in with.
func (t *sessions) of(id string) (proof sum, ok bool) {
	now := time.Now()
	one, ok := t.operators.Get(sumOf(id))
	if !ok {
		one, ok = t.people.Get(sumOf(id))
	}
	if !ok {
		return proof, false
	}
	if now.Sub(*one.last.Load()) >= idleFor || now.Sub(one.begun) >= longest {
		t.end(id)
		return proof, false
	}
	one.last.Store(&now)
	return one.proof, true
}

func (t *sessions) end(id string) {
	t.operators.Remove(sumOf(id))
	t.people.Remove(sumOf(id))
}

// sessionCookie returns the name of the session's cookie. It contains the port, because a
// browser sends cookies to all ports of a host.
func (s *Server) sessionCookie(r *http.Request) string {
	_, port, _ := net.SplitHostPort(s.ln.Addr().String()) // a listener has one
	name := "graphiti-session-" + port
	if s.secure(r) {
		return "__Host-" + name // no other host, and no page without TLS, can set it
	}
	return name
}

// session returns the session's ID in the cookie. It returns "" without one, and also if there
// are several of the name, because another site has set one then.
func (s *Server) session(r *http.Request) string {
	all := r.CookiesNamed(s.sessionCookie(r))
	if len(all) != 1 {
		return ""
	}
	return all[0].Value
}

// setSession sets the session's cookie for this host until the browser ends. An empty ID
// deletes the cookie.
func (s *Server) setSession(w http.ResponseWriter, r *http.Request, id string) {
	c := &http.Cookie{Name: s.sessionCookie(r), Value: id, Path: "/", HttpOnly: true, Secure: s.secure(r), SameSite: http.SameSiteStrictMode}
	if id == "" {
		c.MaxAge = -1
	}
	http.SetCookie(w, c)
}
