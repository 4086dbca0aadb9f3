package admin

import (
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strings"
)

// policy is what a browser may do with a page: everything that it loads is ours, nothing
// stands in it, and nobody frames it.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"

// harden sets what browsers are told with every page and every file of one.
func harden(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	// With no-referrer a browser sends Origin: null with our own forms.
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
}

// static has anybody get what pages are made of.
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

// entrance lets requests for pages in that a person may have sent: no page of another
// site, and no name that somebody has pointed here.
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

// fromPerson reports whether a browser says that one of our own pages asks, or a person:
// who types the address, or follows a link from another site to a page in a tab of its
// own. Other ports of this machine are other sites. Old browsers say nothing.
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

// fromHere reports whether the Origin of a request is ours. What changes something has
// one; a page is asked for without.
func (s *Server) fromHere(r *http.Request) bool {
	switch all := r.Header.Values("Origin"); len(all) {
	case 0:
		return reads(r)
	case 1:
		return s.ours(all[0], r.Host)
	}
	return false
}

// ours reports whether an origin is the one that a request was sent to. With a token, TLS
// may end in front of us.
func (s *Server) ours(origin, host string) bool {
	switch origin {
	case "https://" + host:
		return s.o.TLS != nil || !s.open()
	case "http://" + host:
		return s.o.TLS == nil
	}
	return false
}

// contained stops a panic of a page. What a page shows was said by people, and may stand
// in the panic: neither the answer nor the log has its text.
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
				if to.begun { // it must not look as if it were whole
					panic(http.ErrAbortHandler)
				}
				w.WriteHeader(http.StatusInternalServerError)
			}
		}()
		next(to, r)
	}
}

// panicked says where a panic was, seen from the function that recovers.
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

// answer notes whether an answer has begun.
type answer struct {
	http.ResponseWriter
	begun bool
}

// WriteHeader implements http.ResponseWriter.
func (a *answer) WriteHeader(status int) {
	a.begun = true
	a.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (a *answer) Write(b []byte) (int, error) {
	a.begun = true
	return a.ResponseWriter.Write(b)
}

// Unwrap is for http.ResponseController.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// refuse answers in a sentence.
func refuse(w http.ResponseWriter, status int, why string) { http.Error(w, why, status) }
