package inspector

import (
	"cmp"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
)

// memories is the page with the list of memories.
type memories struct {
	whose
	Name  string // of the person, if not the visitor
	List  []memoryRow
	All   int
	Pager pager
	Talks int
}

// memoryRow is one memory.
type memoryRow struct {
	service.Kept
	Open, Forget string
}

func (v *visit) memories() error {
	if known, err := v.choosePerson("Memory"); !known {
		return err
	}
	w := v.whose()
	got, err := look(v, service.List, func(in *service.ListRequest) { in.Selector, in.Limit = w.selector(), v.listed() })
	if err != nil {
		return err
	}
	m := memories{whose: w, All: got.AllMemories, Talks: got.AllConversations}
	if w != (whose{}) {
		m.Name = w.selector().Whose()
	}
	var rows []service.Kept
	rows, m.Pager = onPage(v, got.Memories, got.AllMemories, "/memory")
	for i := range rows {
		m.List = append(m.List, v.memoryRow(&rows[i]))
	}
	return v.show("Memory", m.main())
}

func (v *visit) memoryRow(k *service.Kept) memoryRow {
	w := v.whose()
	if k.Scope == "user" {
		k.Name = v.nameOf(ledger.Owned{Scope: k.Scope})
	}
	return memoryRow{Kept: *k, Open: w.at("/memory/show", "group", k.Group), Forget: w.at("/memory/forget", "group", k.Group)}
}

// about is the memory of a page: a group, and its name for people.
type about struct {
	whose
	ledger.Owned
	Name string
	Here string // the current one of its pages

	Projects []choice // of its person
}

// Timeline returns the address of the newest messages.
func (a *about) Timeline() string { return a.at("/memory/show", "group", a.Group) }

// Weeks returns the address of the decisions, changes and work by week.
func (a *about) Weeks() string { return a.at("/memory/weeks", "group", a.Group) }

// Facts returns the address of the valid facts.
func (a *about) Facts() string {
	return a.at("/search", "group", a.Group, "project", a.Group, "kind", service.KindFact, "state", service.Valid, "sort", "time")
}

// Forget returns the address of the deletion of the memory.
func (a *about) Forget() string { return a.at("/memory/forget", "group", a.Group) }

// meant returns the memory that the address of a page names.
func (v *visit) meant(here string) (*about, error) {
	a := &about{whose: v.whose(), Here: here}
	a.Group = v.r.FormValue("group")
	groups, err := v.groups()
	if err != nil {
		return nil, err
	}
	for _, o := range groups {
		if o.Group == a.Group || a.Group == "" && o.Scope == "user" {
			a.Owned = o
			break
		}
	}
	a.Name, a.Projects = v.nameOf(a.Owned), v.projectsIn(groups)
	return a, nil
}

// title returns the name as a heading. A project's name is never changed.
func (a *about) title() string {
	if a.Scope == "workspace" {
		return a.Name
	}
	return upper(a.Name)
}

// groups returns the memories of the page's person.
func (v *visit) groups() ([]ledger.Owned, error) {
	m, err := look(v, service.Groups, func(in *service.Selector) { *in = v.ofWhom(v.r.FormValue("group")) })
	return m.Groups, err
}

// projectsIn returns the projects among memories, by key.
func (v *visit) projectsIn(groups []ledger.Owned) (list []choice) {
	for _, o := range groups {
		if o.Scope == "workspace" && o.Key != "" {
			list = append(list, choice{o.Key, v.nameOf(o)})
		}
	}
	return list
}

// nameOf returns the name of a memory for people.
func (v *visit) nameOf(o ledger.Owned) string {
	person := "your own memory"
	if w := v.whose(); w != (whose{}) {
		person = w.selector().Whose()
	}
	return cmp.Or(service.NameOf(o, person), person)
}
