package inspector

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/card"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
)

// search is the page of everything stored that a query and filters select, or of what a message
// would get. Its address contains the query and the filters.
type search struct {
	whose
	Group string // selects a memory without a person
	service.SearchFilter
	Query, Place, Order string // Place is the group of a project
	Places              []choice
	Projects            []choice
	keys                map[string]string // of projects, by group
	Narrower            []navItem         // links to the search of a day, a span or a client
	Many                string            // address of a change of results
	Name, Other         string            // the person, and the choice of another one, for an operator
	Asked               bool
	Hits                []hitView
	Pairs               [][2]*hitView // valid statements about one subject
	All                 int
	AtMost, ByWords     bool
	Threshold           string // of what a message would get, or ""
	Pager               pager
}

// hitView is a result on a page.
type hitView struct {
	rowView
	service.Hit
	text    string
	Parts   []part
	Rule    *standing // a line of the card
	Back    string    // page to return to after a change
	ShownIn string    // page of the turn that last had it in its block
}

// part is a part of a text, marked if it is a word of the query.
type part struct {
	Text   string
	Marked bool
}

// asChat is the order of a search for what a message would get.
const asChat = "chat"

func (v *visit) search() error {
	if known, err := v.choosePerson("Search"); !known {
		return err
	}
	s, err := v.searched()
	if err == nil && (s.Query != "" || s.filtered()) {
		err = v.find(s)
	}
	if err != nil {
		return err
	}
	return v.show("Search", s.main())
}

// searched returns the search of an address.
func (v *visit) searched() (*search, error) {
	f := v.r.FormValue
	s := &search{
		whose: v.whose(), Group: f("group"), Query: strings.TrimSpace(f("q")), Place: f("project"), Order: f("sort"), keys: make(map[string]string),
		SearchFilter: service.SearchFilter{
			Client: strings.TrimSpace(f("client")), Since: f("since"), Until: f("until"),
			Speaker: f("speaker"), Kind: f("kind"), State: f("state"), Newest: f("sort") == "time",
		},
	}
	if v.Caller.Operator && v.multi() {
		s.Name, s.Other = v.ofWhom(s.Group).Whose(), whose{}.at("/search", s.query()[2:]...) // without the group
	}
	groups, err := v.groups()
	s.Projects = v.projectsIn(groups)
	for _, o := range groups {
		if o.Scope == "workspace" && o.Key != "" || o.Scope == "user" {
			if o.Scope == "workspace" {
				s.keys[o.Group] = o.Key
			}
			s.Places = append(s.Places, choice{o.Group, v.nameOf(o)})
		}
	}
	return s, err
}

// results runs the search of a page in a project, or in all.
func (v *visit) results(s *search, limit int) (service.Searched, error) {
	return call(v, service.Search, func(in *service.SearchRequest) {
		in.Selector, in.Query, in.Limit = v.ofWhom(s.Group), s.Query, limit
		if in.Workspace, in.All = s.keys[s.Place], s.Order == asChat; in.All {
			return
		}
		if in.SearchFilter, in.Workspace = s.SearchFilter, ""; s.Place != "" {
			in.Group = s.Place
		}
		in.Everything, in.Since, in.Until = true, v.moment(s.Since, false), v.moment(s.Until, true)
	}, nil)
}

// query returns the names and values of the search in an address.
func (s *search) query() []string {
	return []string{"group", s.Group, "q", s.Query, "project", s.Place, "client", s.Client, "since", s.Since, "until", s.Until, "speaker", s.Speaker, "kind", s.Kind, "state", s.State, "sort", s.Order}
}

func (v *visit) find(s *search) error {
	got, err := v.results(s, v.listed())
	if err != nil {
		return err
	}
	s.Asked, s.All, s.AtMost, s.ByWords = true, got.All, got.AtMost, got.ByWords
	if s.Order == asChat {
		s.Threshold = sentence(got.Threshold())
	}
	back, rows := s.at("/search", s.query()...), []service.Found(nil)
	rows, s.Pager = onPage(v, got.Facts, got.All, "/search", s.query()...)
	for i := range rows {
		h := v.hit(&rows[i], back)
		if h.Rule != nil && rows[i].Scope == "user" {
			h.Rule.Projects = s.Projects
		}
		s.Hits = append(s.Hits, h)
	}
	s.narrow(time.Now().In(v.zone()))
	s.Many = s.at("/search/change", s.query()...)
	if s.Kind == service.KindFact && s.State == service.Valid {
		s.pair()
	}
	return nil
}

// narrow adds links to the search of the last days, and of the clients of the results.
func (s *search) narrow(now time.Time) {
	day := func(ago int) string { return now.AddDate(0, 0, -ago).Format(time.DateOnly) }
	link := func(name, since, until, client string) {
		to := *s
		to.Since, to.Until, to.Client = since, until, client
		s.Narrower = append(s.Narrower, navItem{name, to.at("/search", to.query()...), slices.Equal(to.query(), s.query())})
	}
	link("Any day", "", "", s.Client)
	for n, name := range []string{"Today", "Yesterday", "", "", "", "", ""} {
		link(cmp.Or(name, now.AddDate(0, 0, -n).Weekday().String()), day(n), day(n), s.Client)
	}
	link("7 days", day(6), day(0), s.Client)
	link("30 days", day(29), day(0), s.Client)
	clients := []string{""}
	for i := range s.Hits {
		clients = append(clients, s.Hits[i].Client)
	}
	slices.Sort(clients)
	for _, name := range slices.Compact(clients) {
		link(cmp.Or(name, "Any client"), s.Since, s.Until, name)
	}
}

// mostPairs bounds the pairs of values on a page.
const mostPairs = 5

// pair finds statements with two values of one thing. Facts of a model end each other.
func (s *search) pair() {
	var left []*hitView
	for i := range s.Hits {
		h := &s.Hits[i]
		at := slices.IndexFunc(left, func(o *hitView) bool {
			return o.Message && h.Message && o.Group == h.Group && card.SameSubject(o.text, h.text)
		})
		if at < 0 || len(s.Pairs) == mostPairs {
			left = append(left, h)
			continue
		}
		s.Pairs = append(s.Pairs, [2]*hitView{left[at], h})
		left = slices.Delete(left, at, at+1)
	}
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
func (v *visit) hit(f *service.Found, back string) (h hitView) {
	if f.Kind == "" {
		h.rowView = rated(f.Verdict, f.Scope, f.Strength)
	} else {
		h.Hit, h.Scope = f.Hit, f.In
	}
	h.ID, h.Group, h.Time, h.text, h.Parts, h.Back = f.ID, f.Group, f.Since, f.Text, partsOf(f.Text, h.Marks), back
	if f.Scope == "user" {
		_, others, copied := strings.Cut(f.In, ", ")
		h.Scope = v.nameOf(ledger.Owned{Scope: f.Scope}) + onlyIf(copied, ", "+others)
	}
	if (h.Message || f.Kind == "" && len(f.Keys) == 0) && h.State != service.Waiting {
		h.Href = v.messageAt(h.ID, f.Group, back)
	}
	if h.Conversation != "" {
		h.Source = v.whose().conversationAt(h.Conversation, h.Turn)
	}
	if l := h.LastShown; l != nil && l.Conversation != "" {
		h.ShownIn = v.whose().conversationAt(l.Conversation, l.Turn)
	}
	if h.Line != nil {
		h.Rule = &standing{*h.Line, lineForm{v.whose(), v.r.FormValue("group"), back}, editable(h.Line.Text), nil}
	}
	return h
}

func partsOf(text string, marks [][2]int) (parts []part) {
	at := 0
	for _, m := range marks {
		from := max(at, m[0])
		parts = append(parts, part{text[at:from], false}, part{text[from:max(from, m[1])], true})
		at = max(from, m[1])
	}
	return append(parts, part{text[at:], false})
}
