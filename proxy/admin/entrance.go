package admin

import (
	"net/http"

	"github.com/graphiti-proxy/graphiti-proxy/proxy/wire"
)

// harden sets the security headers of pages and of their files: browsers load resources from this
// server only, run no inline script, and show no page in a frame.
func harden(h http.Header) {
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	// With no-referrer a browser sends Origin: null with our own forms.
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
}

// static serves the files of pages to any client.
func (s *Server) static(w http.ResponseWriter, r *http.Request) {
	harden(w.Header())
	s.pages.ServeStatic(w, r)
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
		case foreign(r) && !linked(r):
			refuse(w, http.StatusForbidden, "the inspector does not answer to pages of other sites")
		default:
			next(w, r)
		}
	}
}

// reads reports whether a request changes nothing.
func reads(r *http.Request) bool { return r.Method == http.MethodGet || r.Method == http.MethodHead }

var crossOrigin http.CrossOriginProtection

// foreign reports whether a page of another origin sends a request, according to the browser. It
// checks reads like changes.
func foreign(r *http.Request) bool {
	r = r.WithContext(r.Context())
	r.Method = http.MethodPost
	return crossOrigin.Check(r) != nil
}

// linked reports whether a person follows a link of another site to a page in its own tab.
func linked(r *http.Request) bool {
	return reads(r) && r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
}

// contained stops a panic and cuts off its answer. The panic may contain text from people, so the
// log has only its place.
func (s *Server) contained(next http.Handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		defer wire.CatchPanic(s.o.Log, "the admin side", func() { panic(http.ErrAbortHandler) })
		next.ServeHTTP(w, r)
	}
}

func refuse(w http.ResponseWriter, status int, why string) { http.Error(w, why, status) }
