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
	// CSRFHeader and csrfField carry the token without which nothing is changed.
	CSRFHeader = "X-CSRF-Token"
	csrfField  = "csrf"

	maxForm  = 1 << 20 // bytes of a form that is read for its token
	maxFirst = 4 << 10 // likewise of one with a file
)

// seal makes what only this process can have made. Its key is random, and ends with it.
type seal struct{ key []byte }

func newSeal() seal { return seal{[]byte(random())} }

func (s seal) of(what, value string) string {
	m := hmac.New(sha256.New, s.key)
	_, _ = m.Write([]byte(what + "\x00" + value)) // which never fails
	return hex.EncodeToString(m.Sum(nil))
}

// csrf is the token of the forms that are shown to who has a cookie.
func (s seal) csrf(cookie string) string { return s.of("csrf", cookie) }

// visit returns the cookie of a visitor who has not logged in: none of them needs to be
// remembered, and so nobody can fill the memory of the process with visits.
func (s seal) visit(id string) string { return id + "." + s.of("visit", id) }

// isVisit reports whether a cookie is one that visit made.
func (s seal) isVisit(cookie string) bool {
	id, _, ok := strings.Cut(cookie, ".")
	return ok && hmac.Equal([]byte(cookie), []byte(s.visit(id)))
}

// names are the names of the cookies. A browser gives cookies to all ports of a host, so
// that they have the port in their names.
type names struct{ session, visit string }

func (s *Server) names(r *http.Request) names {
	prefix, port := "", portOf(s.ln.Addr())
	if s.secure(r) {
		prefix = "__Host-" // no other host, and nobody without TLS, can set it
	}
	return names{prefix + "graphiti-session-" + port, prefix + "graphiti-visit-" + port}
}

func portOf(at net.Addr) string {
	_, port, _ := net.SplitHostPort(at.String()) // a listener has one
	return port
}

// cookie returns the value of a cookie; empty where there is none, or several of the
// name: then somebody else has set one.
func cookie(r *http.Request, name string) string {
	all := r.CookiesNamed(name)
	if len(all) != 1 {
		return ""
	}
	return all[0].Value
}

// setCookie sets a cookie for this host until the browser ends; an empty value deletes it.
func (s *Server) setCookie(w http.ResponseWriter, r *http.Request, name, value string) {
	c := &http.Cookie{Name: name, Value: value, Path: "/", HttpOnly: true, Secure: s.secure(r), SameSite: http.SameSiteStrictMode}
	if value == "" {
		c.MaxAge = -1
	}
	http.SetCookie(w, c)
}

// showsToken reports whether a request shows the token of forms: in a header, in a form
// that is not larger than a form is, or in the first field of one with a file. A body of
// any other type is not read.
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

// firstField returns the token in a form with a file, which may be long, if it is the
// first field. The body stays as it is for who reads it next.
func firstField(r *http.Request, boundary string) string {
	body := bufio.NewReaderSize(r.Body, maxFirst)
	begins, _ := body.Peek(maxFirst) // a short one is all of it
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
