package inspector

import "net/http"

// login is the page with the form for a token.
type login struct {
	Problem string
	Multi   bool
	Link    string
}

// ServeLogin serves the login form, which posts the token to /login. problem is the
// reason for the failure of the last try; multi allows people to log in with their own
// credential. link is the secret of a link, which the form contains, or "".
func (p *Pages) ServeLogin(w http.ResponseWriter, status int, problem string, multi bool, link string) {
	page, err := fill((&frame{Title: "Log in", Main: login{sentence(problem), multi, link}.main()}).bare())
	if err != nil {
		p.o.Log.Error("inspector login page failed", "error", err)
		http.Error(w, "the page cannot be shown", http.StatusInternalServerError)
		return
	}
	send(w, status, page)
}
