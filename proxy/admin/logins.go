package admin

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
)

const (
	// A login ends idleFor after its last request, or longest after its start.
	idleFor = 30 * time.Minute
	longest = 12 * time.Hour

	// renewAfter is the least time between two cookies of a login.
	renewAfter = time.Minute

	// linkFor is the life of a link, and of the logins with it.
	linkFor = 15 * time.Minute

	// hardening is the number of rounds for the key of logins, about 0.1 s. Everyone with a login
	// can try to guess the token that sealed it.
	hardening = 600_000
)

// sum is the SHA-256 of a secret. All sums have the same length, so a comparison leaks
// nothing.
type sum [sha256.Size]byte

func sumOf(secret string) sum { return sha256.Sum256([]byte(secret)) }

// digits returns the sum of a credential as its fingerprint.
func (s sum) digits() string { return hex.EncodeToString(s[:]) }

// token is the required token, with the cipher of logins.
type token struct {
	text string // empty if no token is required
	seal func() cipher.AEAD
}

// newToken derives the cipher at its first use. All replicas with the token have the same one.
func newToken(text string) *token {
	return &token{text, sync.OnceValue(func() cipher.AEAD {
		key, _ := pbkdf2.Key(sha256.New, text, []byte("graphiti-proxy.login.1"), hardening, 32) // fails for shorter keys only
		block, _ := aes.NewCipher(key)                                                          // likewise
		aead, _ := cipher.NewGCMWithRandomNonce(block)                                          // fails for other ciphers only
		return aead
	})}
}

// login is the content of a visitor's cookie, and of a link. It does not contain permissions,
// except those of a link: each request determines them again.
type login struct {
	ID           string
	Proof        []byte          `json:",omitempty"` // sum of the secret
	Link         *service.Caller `json:",omitempty"` // the person of a link, in place of Proof
	Begun, Until time.Time
}

// sealed returns a login as text that only a server with the same token can make or read.
func (t *token) sealed(l login) string {
	plain, _ := json.Marshal(l) // texts and times only
	return base64.RawURLEncoding.EncodeToString(t.seal().Seal(nil, nil, plain, nil))
}

// opened returns the login in a sealed text, unless its time is over.
func (t *token) opened(text string) (l login, ok bool) {
	sealed, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || text == "" || t.text == "" {
		return l, false
	}
	plain, err := t.seal().Open(nil, nil, sealed, nil)
	if err != nil || json.Unmarshal(plain, &l) != nil || !time.Now().Before(l.Until) {
		return login{}, false
	}
	return l, true
}

// opened returns the login in a sealed text, unless it has ended.
func (s *Server) opened(ctx context.Context, text string) (l login, ok bool) {
	l, ok = s.token.Load().opened(text)
	m := s.o.Host.Now().Memory
	return l, ok && (m == nil || !m.LoginEnded(ctx, l.ID))
}

func begin(proof sum) login {
	now := time.Now()
	return login{ID: rand.Text(), Proof: proof[:], Begun: now, Until: now.Add(idleFor)}
}

// renewed returns a login whose visitor is active, and whether it lasts longer now.
func (l login) renewed() (login, bool) {
	until := time.Now().Add(idleFor)
	if end := l.Begun.Add(longest); until.After(end) {
		until = end
	}
	if l.Link != nil || until.Sub(l.Until) < renewAfter {
		return l, false
	}
	l.Until = until
	return l, true
}

// Link returns a link for a person.
func (s *Server) Link(c service.Caller) service.Link {
	now := time.Now()
	l := login{ID: rand.Text(), Link: &c, Begun: now, Until: now.Add(linkFor)}
	return service.Link{Path: "/login?link=" + s.token.Load().sealed(l), Until: l.Until}
}

// end ends a login at all replicas. If that fails, the login ends later, by itself.
func (s *Server) end(ctx context.Context, l login) {
	if m := s.o.Host.Now().Memory; m != nil && l.ID != "" {
		if err := m.EndLogin(ctx, l.ID); err != nil {
			s.o.Log.Warn("end a login failed, it ends by itself", "until", l.Until, "error", err)
		}
	}
}

// loginCookie returns the name of the login's cookie. It contains the port, because a browser
// sends cookies to all ports of a host.
func (s *Server) loginCookie(r *http.Request) string {
	_, port, _ := net.SplitHostPort(r.Host) // "" without a port
	name := "graphiti-session-" + port
	if s.secure(r) {
		return "__Host-" + name // no other host, and no page without TLS, can set it
	}
	return name
}

// loginOf returns the login in the cookie. There is none if several cookies have the name, because
// another site has set one then.
func (s *Server) loginOf(r *http.Request) (login, bool) {
	all := r.CookiesNamed(s.loginCookie(r))
	if len(all) != 1 {
		return login{}, false
	}
	return s.opened(r.Context(), all[0].Value)
}

// setLogin sets the login's cookie for this host until the browser ends. An empty text deletes
// the cookie.
func (s *Server) setLogin(w http.ResponseWriter, r *http.Request, sealed string) {
	c := &http.Cookie{Name: s.loginCookie(r), Value: sealed, Path: "/", HttpOnly: true, Secure: s.secure(r), SameSite: http.SameSiteStrictMode}
	if sealed == "" {
		c.MaxAge = -1
	}
	http.SetCookie(w, c)
}
