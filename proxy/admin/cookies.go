package admin

import (
	"bufio"
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"mime"
	"mime/multipart"
	"net"
	"net/http"
	"strings"
)

const (
	// CSRFHeader and csrfField carry the token that every change requires.
	CSRFHeader = "X-CSRF-Token"
	csrfField  = "csrf"

	maxForm  = 1 << 20 // bytes of a form
	maxFirst = 4 << 10 // bytes at the start of a form with a file
)

// seal signs values, so that only this process can make them. Its key is random, and ends
// with the process.
type seal struct{ key []byte }

func newSeal() seal { return seal{[]byte(random())} }

func (s seal) of(what, value string) string {
	m := hmac.New(sha256.New, s.key)
	_, _ = m.Write([]byte(what + "\x00" + value)) // never fails
	return hex.EncodeToString(m.Sum(nil))
}

// csrf returns the token for the forms of a visitor with a cookie.
func (s seal) csrf(cookie string) string { return s.of("csrf", cookie) }

// visit returns the cookie of a visitor without a login. The server does not store it, so
// visits cannot fill the memory of the process.
func (s seal) visit(id string) string { return id + "." + s.of("visit", id) }

// isVisit reports whether visit made a cookie.
func (s seal) isVisit(cookie string) bool {
	id, _, ok := strings.Cut(cookie, ".")
	return ok && hmac.Equal([]byte(cookie), []byte(s.visit(id)))
}

// names are the names of the cookies. They contain the port, because a browser sends
// cookies to all ports of a host.
type names struct{ session, visit string }

func (s *Server) names(r *http.Request) names {
	prefix, port := "", portOf(s.ln.Addr())
	if s.secure(r) {
		prefix = "__Host-" // no other host, and no page without TLS, can set it
	}
	return names{prefix + "graphiti-session-" + port, prefix + "graphiti-visit-" + port}
}

func portOf(at net.Addr) string {
	_, port, _ := net.SplitHostPort(at.String()) // a listener has one
	return port
}

// cookie returns the value of a cookie. It returns "" without one, and also if there are
// several of the name, because another site has set one then.
func cookie(r *http.Request, name string) string {
	all := r.CookiesNamed(name)
	if len(all) != 1 {
		return ""
	}
	return all[0].Value
}

// setCookie sets a cookie for this host until the browser ends. An empty value deletes the
// cookie.
func (s *Server) setCookie(w http.ResponseWriter, r *http.Request, name, value string) {
	c := &http.Cookie{Name: name, Value: value, Path: "/", HttpOnly: true, Secure: s.secure(r), SameSite: http.SameSiteStrictMode}
	if value == "" {
		c.MaxAge = -1
	}
	http.SetCookie(w, c)
}

// showsToken reports whether a request has the token of forms: in a header, in a form of at
// most maxForm bytes, or in the first field of a form with a file. It does not read a body
// of any other type.
func showsToken(w http.ResponseWriter, r *http.Request, want string) bool {
	got := r.Header.Get(CSRFHeader)
	kind, parameters, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch {
	case got != "" || err != nil:
	case kind == "application/x-www-form-urlencoded":
		r.Body = http.MaxBytesReader(w, r.Body, maxForm)
		if r.ParseForm() != nil {
			return false
		}
		got = r.PostForm.Get(csrfField)
	case kind == "multipart/form-data":
		got = firstField(r, parameters["boundary"])
	}
	return hmac.Equal([]byte(got), []byte(want))
}

// firstField returns the token in a form with a file of any length, if it is the first
// field. The body stays unread for the next reader.
func firstField(r *http.Request, boundary string) string {
	body := bufio.NewReaderSize(r.Body, maxFirst)
	begins, _ := body.Peek(maxFirst) // or the whole of a short form
	r.Body = struct {
		io.Reader
		io.Closer
	}{body, r.Body}
	part, err := multipart.NewReader(bytes.NewReader(begins), boundary).NextPart()
	if err != nil || part.FormName() != csrfField {
		return ""
	}
	token, err := io.ReadAll(part)
	if err != nil {
		return ""
	}
	return string(token)
}
