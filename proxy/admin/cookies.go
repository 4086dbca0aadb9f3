package admin

import (
	"net"
	"net/http"
)

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
