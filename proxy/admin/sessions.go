package admin

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
)

const (
	maxSessions = 1000
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
	proof       sum            // of the secret of the login
	of          service.Caller // result of keyOf
	begun, last time.Time
}

func (s *session) over(now time.Time) bool {
	return now.Sub(s.last) >= idleFor || now.Sub(s.begun) >= longest
}

// sessions are the visitors with a login. They are in RAM only: a restart ends them all.
// They are safe for concurrent use.
type sessions struct {
	mu sync.Mutex // guards by
	by map[sum]*session
}

func newSessions() *sessions { return &sessions{by: make(map[sum]*session)} }

// begin starts a session, and returns its id. Only the sum of the id is stored.
func (t *sessions) begin(proof sum, c service.Caller) (id string) {
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	c = keyOf(c)
	t.makeRoomLocked(now, c)
	id = random()
	t.by[sumOf(id)] = &session{proof: proof, of: c, begun: now, last: now}
	return id
}

// makeRoomLocked ends the oldest session of a caller with too many. If all callers together
// have too many, it ends the oldest of them, operators' sessions last: any credential can
// begin sessions, and must not end an operator's.
func (t *sessions) makeRoomLocked(now time.Time, c service.Caller) {
	var oldest, own sum
	theirs := 0
	for id, s := range t.by {
		if s.over(now) {
			delete(t.by, id)
			continue
		}
		if o := t.by[oldest]; o == nil || o.of.Operator && !s.of.Operator || o.of.Operator == s.of.Operator && s.begun.Before(o.begun) {
			oldest = id
		}
		if s.of == c {
			theirs++
			if o := t.by[own]; o == nil || s.begun.Before(o.begun) {
				own = id
			}
		}
	}
	switch {
	case theirs >= maxOfCaller:
		delete(t.by, own)
	case len(t.by) >= maxSessions:
		delete(t.by, oldest)
	}
}

// of returns the sum of the secret that the visitor of a session logged in with.
func (t *sessions) of(id string) (proof sum, ok bool) {
	if id == "" {
		return proof, false
	}
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.by[sumOf(id)]
	switch {
	case s == nil:
		return proof, false
	case s.over(now):
		delete(t.by, sumOf(id))
		return proof, false
	}
	s.last = now
	return s.proof, true
}

func (t *sessions) end(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.by, sumOf(id))
}

// random returns 32 random bytes in hex digits.
func random() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
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
