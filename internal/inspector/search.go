package inspector

import (
	"net/url"
	"strings"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
)

// search is the page of everything stored that a query and filters select. Its address contains
// them.
type search struct {
	whose
	Group string // selects a memory without a person
	service.SearchFilter
	Query, Place string // Place is the group of a project
	Places       []choice
	Asked        bool
	Hits         []hitView
	All          int
	AtMost       bool
	Pager        pager
	Chat         string // page of what a message gets
}

// hitView is a result on a page.
type hitView struct {
	rowView
	service.Found
	Parts []part
	Rule  *standing // a line of the card
}

// part is a part of a text, marked if it is a word of the query.
type part struct {
	Text   string
	Marked bool
}

func (v *visit) search() error {
	if known, err := v.choosePerson("Search"); !known {
		return err
	}
	f := v.r.FormValue
	s := &search{
		whose: v.whose(), Group: f("group"), Query: strings.TrimSpace(f("q")), Place: f("project"),
		SearchFilter: service.SearchFilter{
			Client: strings.TrimSpace(f("client")), Since: f("since"), Until: f("until"),
			Speaker: f("speaker"), Kind: f("kind"), State: f("state"), Newest: f("sort") == "time",
		},
	}
	s.Chat = v.whose().at("/search/chat", "group", s.Group)
	var workspace string
	var err error
	if s.Places, workspace, err = v.projects(s.Place); err != nil {
		return err
	}
	if s.Query == "" && !s.filtered() {
		return v.show("Search", s.main())
	}
	got, err := change(v, service.Search, func(in *service.SearchRequest) {
		in.Selector, in.SearchFilter, in.Query, in.Limit = v.ofWhom(s.Group), s.SearchFilter, s.Query, v.listed()
		in.Workspace, in.Everything = workspace, true
		in.Since, in.Until = v.moment(s.Since, false), v.moment(s.Until, true)
	})
	if err != nil {
		return err
	}
	s.Asked, s.All, s.AtMost = true, got.All, got.AtMost
	q := v.r.URL.Query()
	q.Del("done")
	q.Del("undo")
	back := (&url.URL{Path: "/search", RawQuery: q.Encode()}).String()
	var rows []service.Found
	rows, s.Pager = onPage(v, got.Facts, got.All, "/search", "group", s.Group, "q", s.Query, "project", s.Place, "client", s.Client, "since", s.Since, "until", s.Until,
		"speaker", s.Speaker, "kind", s.Kind, "state", s.State, "sort", f("sort"))
	for i := range rows {
		s.Hits = append(s.Hits, v.hit(&rows[i], back))
	}
	return v.show("Search", s.main())
}

// filtered reports whether the page has a filter.
func (s *search) filtered() bool { return s.SearchFilter != (service.SearchFilter{}) || s.Place != "" }

// moment returns a day of the visitor as a time, and any other text unchanged.
func (v *visit) moment(day string, end bool) string {
	at, err := service.DayOf(day, end, v.zone())
	if err != nil || day == "" {
		return day
	}
	return dated(&at)
}

// hit converts a result. back is the page to return to after a change of it.
func (v *visit) hit(f *service.Found, back string) hitView {
	h := hitView{rowView: rowView{ID: f.ID, Group: f.Group, Role: f.Role, Time: f.Since, Kind: f.Kind, Scope: f.In, State: f.State}, Found: *f, Parts: partsOf(f.Text, f.Marks)}
	if f.Scope == "user" {
		h.rowView.Scope = strings.TrimPrefix(v.nameOf(ledger.Owned{Scope: f.Scope}), "the memory of ")
	}
	if f.Kind == "message" && f.State != service.Waiting {
		h.Href = v.messageAt(f.ID, f.Group, back)
	}
	if f.Conversation != "" {
		h.rowView.Source = v.conversationAt(f.Conversation, f.Turn)
	}
	if f.Line != nil {
		h.Rule = &standing{*f.Line, lineForm{v.whose(), v.r.FormValue("group"), back}, editable(f.Line.Text)}
	}
	return h
}

// partsOf splits a text at its marks.
func partsOf(text string, marks [][2]int) (parts []part) {
	at := 0
	for _, m := range marks {
		parts = append(parts, part{text[at:m[0]], false}, part{text[m[0]:m[1]], true})
		at = m[1]
	}
	return append(parts, part{text[at:], false})
}

// by returns the author and the client of a result in words.
func (h *hitView) by() string {
	by := "work of an agent"
	if h.rowView.Role != "" {
		by = roleOf(h.rowView.Role)
	}
	if h.Client != "" {
		by += ", with " + oneLine(h.Client)
	}
	return by
}

// states returns the state of a result in words, or "" if it is valid.
func (h *hitView) states() string {
	if h.Rule != nil {
		return h.Rule.State()
	}
	return map[string]string{string(service.Ended): "ended", service.Waiting: "held", string(service.Later): "valid later"}[h.rowView.State]
}
