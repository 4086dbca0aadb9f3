package inspector

import (
	"net/http"
)

// login is the page on which one shows a token.
type login struct {
	Problem string
	Multi   bool
	CSRF    string
}

// ServeLogin serves the login form, which posts token and csrf to /login. problem says why
// the last try failed; multi says that people may log in with a credential of their own.
func (p *Pages) ServeLogin(w http.ResponseWriter, status int, problem, csrf string, multi bool) {
	secure(w)
	page, err := fill(p.templates["login"], "bare", frame{Title: "Log in", Visit: Visit{CSRF: csrf}, Main: login{sentence(problem), multi, csrf}})
	if err != nil {
		p.o.Log.Error("inspector login page failed", "error", err)
		http.Error(w, "the page cannot be shown", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(page) // the browser left: nobody to tell
}
