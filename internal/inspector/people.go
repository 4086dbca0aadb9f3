package inspector

import (
	"github.com/graphiti-proxy/graphiti-proxy/internal/health"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
)

// peoplePage is the page of all people with a memory.
type peoplePage struct {
	Find        string
	Acts        bool // the visitor may export and forget
	People      []personRow
	All         int
	Unconfirmed []health.Unconfirmed
}

const peopleAtOnce = 200

type personRow struct {
	service.ListedPerson
	Open string
	whose
	Group string // without a selector of the person
}

// crowd lists people, with links to a page at a path, with more in its query.
func (v *visit) crowd(got *service.PeopleList, path string, with ...string) *peoplePage {
	c := &peoplePage{All: got.AllPeople}
	for _, s := range got.People {
		w := whose{s.Means.User, s.Means.Credential}
		p := personRow{ListedPerson: s, whose: w, Group: s.Means.Group}
		switch {
		case w != (whose{}):
			p.Open = w.at(path, with...)
		case s.Means.Group == "":
		case path == "/memory": // page of one group
			p.Open = w.at("/memory/show", "group", s.Means.Group)
		case path != "/conversations": // conversations belong to a person
			p.Open = w.at(path, append([]string{"group", s.Means.Group}, with...)...)
		}
		c.People = append(c.People, p)
	}
	return c
}

func (v *visit) people() error {
	got, err := look(v, service.ListPeople, func(in *service.PeopleRequest) { in.Find, in.Limit = v.r.FormValue("find"), peopleAtOnce })
	if err != nil {
		return err
	}
	st, err := look(v, service.Status, func(*service.StatusRequest) {})
	if err != nil {
		return err
	}
	c := v.crowd(&got, "/memory")
	c.Unconfirmed, c.Find, c.Acts = st.Unconfirmed, v.r.FormValue("find"), v.Caller.Operator
	return v.show("People", c.main())
}

func (v *visit) accept() error {
	return act(v, service.Accept, "/people", "accepted", func(in *service.Acceptance) {
		in.ID, in.Keep = v.r.FormValue("id"), v.r.FormValue("keep") == "1"
	})
}
