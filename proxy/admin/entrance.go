package admin

import (
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strings"
)

// policy is the Content-Security-Policy of pages: browsers load resources from this server
// only, run no inline script, and show no page in a frame.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"

// harden sets the security headers of pages and of their files.
func harden(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	// With no-referrer a browser sends Origin: null with our own forms.
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
}

// static serves the files of pages to any client.
func (s *Server) static(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		harden(w.Header())
		if !reads(r) {
			w.Header().Set("Allow", "GET, HEAD")
			refuse(w, http.StatusMethodNotAllowed, "this can only be read")
			return
		}
		s.contained(next)(w, r)
	}
}

// entrance admits requests for pages that a person may have sent. It refuses pages of other
// sites and, without a token, host names that may have been pointed here.
func (s *Server) entrance(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		harden(w.Header())
		w.Header().Set("Cache-Control", "no-store")
		switch {
		case s.open() && !local(r.Host):
			refuse(w, http.StatusForbidden, "without admin.token the inspector answers on this machine only, at an address such as 127.0.0.1 or localhost; set admin.token for others")
		case !fromPerson(r) || !s.fromHere(r):
			refuse(w, http.StatusForbidden, "the inspector does not answer to pages of other sites")
		default:
			s.contained(next)(w, r)
		}
	}
}

// reads reports whether a request changes nothing.
func reads(r *http.Request) bool { return r.Method == http.MethodGet || r.Method == http.MethodHead }

// fromPerson reports whether a request comes from one of our own pages or from a person,
// according to the browser. A person types the address, or follows a link from another site
// to a page in its own tab. Other ports of this machine are other sites. Old browsers send
// no such headers, and pass.
func fromPerson(r *http.Request) bool {
	for _, v := range r.Header.Values("Sec-Fetch-Dest") {
		if slices.Contains([]string{"iframe", "frame", "embed", "object", "fencedframe"}, strings.ToLower(strings.TrimSpace(v))) {
			return false
		}
	}
	for _, v := range r.Header.Values("Sec-Fetch-Site") {
		switch strings.ToLower(strings.TrimSpace(v)) {
		case "same-origin", "none":
		default:
			if !reads(r) || r.Header.Get("Sec-Fetch-Mode") != "navigate" || r.Header.Get("Sec-Fetch-Dest") != "document" {
				return false
			}
		}
	}
	return true
}

// fromHere reports whether the Origin of a request is ours. Browsers send one with every
// change, and none with a request for a page.
func (s *Server) fromHere(r *http.Request) bool {
	switch all := r.Header.Values("Origin"); len(all) {
	case 0:
		return reads(r)
	case 1:
		return s.ours(all[0], r.Host)
	}
	return false
}

// ours reports whether an origin is the host of the request. With a token, TLS may end in
// front of the proxy.
func (s *Server) ours(origin, host string) bool {
	switch origin {
	case "https://" + host:
		return s.o.TLS != nil || !s.open()
	case "http://" + host:
		return s.o.TLS == nil
	}
	return false
}

// contained stops a panic of a page. The panic may contain text from people, so neither the
// answer nor the log has its text.
func (s *Server) contained(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		to := &answer{ResponseWriter: w}
		defer func() {
			switch v := recover(); v {
			case nil:
			case http.ErrAbortHandler:
				panic(v)
			default:
				s.o.Log.Error("a bug was contained; please report it", "part", "the inspector", "panic", fmt.Sprintf("%T", v), "at", panicked())
				if to.begun { // the answer must not appear complete
					panic(http.ErrAbortHandler)
				}
				w.WriteHeader(http.StatusInternalServerError)
			}
		}()
		next(to, r)
	}
}

// panicked returns the place of a panic. The deferred function that recovers calls it.
func panicked() string {
	var pcs [24]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs[:])])
	for behind, more := false, true; more; {
		var f runtime.Frame
		f, more = frames.Next()
		if behind && !strings.HasPrefix(f.Function, "runtime.") {
			return fmt.Sprintf("%s:%d", f.Function, f.Line)
		}
		behind = behind || f.Function == "runtime.gopanic"
	}
	return ""
}

// answer records whether a response has begun.
type answer struct {
	http.ResponseWriter
	begun bool
}

func (a *answer) WriteHeader(status int) {
	a.begun = true
	a.ResponseWriter.WriteHeader(status)
}

func (a *answer) Write(b []byte) (int, error) {
	a.begun = true
	return a.ResponseWriter.Write(b)
}

// Unwrap is for http.ResponseController.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// refuse answers with a sentence.
func refuse(w http.ResponseWriter, status int, why string) { http.Error(w, why, status) }
