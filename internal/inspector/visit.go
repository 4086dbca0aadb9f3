package inspector

import (
	"bytes"
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"

	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
)

// visit is one request of a visitor.
type visit struct {
	Visit
	p *Pages
	w http.ResponseWriter
	r *http.Request

	room int // bytes left on the page for texts after their beginnings
	left int // withdrawn messages of a forget
	used int // bytes of all other texts and the HTML around them, about
}

// frame is the layout around the content of each page.
type frame struct {
	Title   string
	Scripts []templ.Component
	Places  []navItem
	Visit
	Notice string
	Whose  whose
	Zone   string // of days and times
	Undo   *undo  // reverts the change of the notice
	Main   templ.Component
}

// navItem is one link of the navigation.
type navItem struct {
	Name, Href string
	Here       bool
}

// show renders a page, with scripts of its own.
func (v *visit) show(title string, main templ.Component, scripts ...templ.Component) error {
	return v.render(http.StatusOK, title, main, scripts...)
}

// render renders a page with a status. It sends the page only when it is complete.
func (v *visit) render(status int, title string, main templ.Component, scripts ...templ.Component) error {
	done := v.r.URL.Query().Get("done")
	f := frame{Title: title, Scripts: scripts, Whose: v.whose(), Zone: v.zone().String(), Places: v.places(), Visit: v.Visit, Notice: notices[done], Undo: v.undo(done), Main: main}
	if left, err := strconv.Atoi(v.r.URL.Query().Get("left")); err == nil && left > 0 && f.Notice != "" {
		f.Notice += " In Graphiti: " + service.Remaining(left) + "."
	}
	page, err := fill(f.page())
	if err != nil {
		return err
	}
	send(v.w, status, page)
	return nil
}

func send(w http.ResponseWriter, status int, page []byte) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(page) // fails only after the browser has left
}

// fill renders a component. It makes unprintable characters visible in the whole page: no
// component contains any itself. It does not use the context of the request, because a canceled
// one would also prevent the error page.
func fill(c templ.Component) ([]byte, error) {
	var b bytes.Buffer
	if err := c.Render(context.Background(), &b); err != nil {
		return nil, err
	}
	return visible(b.Bytes()), nil
}

// places returns the links of the navigation that the visitor may follow.
func (v *visit) places() []navItem {
	list := []navItem{{Name: "Today", Href: "/"}, {Name: "Live", Href: "/live"}, {Name: "Conversations", Href: "/conversations"},
		{Name: "Memory", Href: "/memory"}, {Name: "Search", Href: "/search"}, {Name: "Changes", Href: "/changes"}}
	if v.Caller.Operator {
		list = append(list, navItem{Name: "Delivery", Href: "/delivery"})
	}
	if (v.Caller.Operator || v.Caller.Auditor) && v.multi() {
		list = append(list, navItem{Name: "People", Href: "/people"})
	}
	for i := range list {
		p := &list[i]
		p.Here = v.r.URL.Path == p.Href || p.Href != "/" && strings.HasPrefix(v.r.URL.Path, strings.TrimSuffix(p.Href, "s")+"/")
	}
	return list
}

// multi reports whether there may be several people.
func (v *visit) multi() bool {
	return v.p.o.Host.Now().Memory != nil && v.p.o.Host.Now().Memory.Multi()
}

// zone returns the visitor's time zone, which page.js stores in a cookie, or UTC.
func (v *visit) zone() *time.Location {
	if c, err := v.r.Cookie("zone"); err == nil {
		if zone, err := time.LoadLocation(c.Value); err == nil {
			return zone
		}
	}
	return time.UTC
}

// whose identifies the person of a page. The zero value is the owner, or the visitor.
type whose struct{ User, Credential string }

func (v *visit) whose() whose {
	return whose{v.r.FormValue("user"), v.r.FormValue("credential")}
}

// ofWhom returns the selector for the memory of a page. It selects by group if an operator
// of several people's memories names no person.
func (v *visit) ofWhom(group string) service.Selector {
	s := v.whose().selector()
	if s == (service.Selector{}) && v.Caller.Operator && v.multi() {
		s.Group = group
	}
	return s
}

func (w whose) selector() service.Selector {
	return service.Selector{User: w.User, Credential: w.Credential}
}

// at returns the address of a page about the same person, with more in its query.
func (w whose) at(path string, more ...string) string {
	q := make(url.Values)
	for i := 0; i+1 < len(more); i += 2 {
		if more[i+1] != "" {
			q.Set(more[i], more[i+1])
		}
	}
	if w.User != "" {
		q.Set("user", w.User)
	}
	if w.Credential != "" {
		q.Set("credential", w.Credential)
	}
	if len(q) == 0 {
		return path
	}
	return path + "?" + q.Encode()
}

// choosePerson shows a list of people to choose from, unless the page has a person or a group,
// and reports whether it has. The links keep the page's other fields.
func (v *visit) choosePerson(title string) (bool, error) {
	if !v.Caller.Operator || !v.multi() || v.whose() != (whose{}) || v.r.FormValue("group") != "" {
		return true, nil
	}
	crowd, err := look(v, service.ListPeople, func(in *service.PeopleRequest) {})
	if err != nil {
		return false, err
	}
	var with []string
	for name, values := range v.r.URL.Query() {
		if name != "project" { // of another person
			with = append(with, name, values[0])
		}
	}
	return false, v.show(title, v.crowd(&crowd, v.r.URL.Path, with...).choice())
}

// back returns the page that a form names, or otherwise if that is not a path of this site.
func (v *visit) back(otherwise string) string {
	to, err := url.Parse(v.r.FormValue("back"))
	if err != nil || to.Scheme != "" || to.Host != "" || to.User != nil || !strings.HasPrefix(to.Path, "/") ||
		strings.HasPrefix(to.Path, "//") || strings.ContainsRune(to.Path, '\\') {
		return otherwise
	}
	return to.String()
}

// backToMemory returns the page that a form names, or the list of memories.
func (v *visit) backToMemory() string { return v.back(v.whose().at("/memory")) }

// done redirects the visitor to a page after a change, with a notice of it and the changes
// for an undo.
func (v *visit) done(to, notice string, undo ...string) error {
	u, err := url.Parse(to)
	if err != nil {
		return err
	}
	q := u.Query()
	q.Set("done", notice)
	if q["undo"] = undo; v.left > 0 {
		q.Set("left", strconv.Itoa(v.left))
	}
	u.RawQuery = q.Encode()
	http.Redirect(v.w, v.r, u.String(), http.StatusSeeOther)
	return nil
}
