package inspector

import (
	"strings"

	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
)

// chatSearch is the page of the results for a message, with the reasons against the others.
type chatSearch struct {
	whose
	Group     string // selects a memory without a person
	Query     string
	Place     string // group of the project for the search
	Places    []choice
	Asked     bool
	Threshold string
	Shown     []rowView
	Others    []rowView
}

func (v *visit) chatForm() error {
	if known, err := v.choosePerson("What a message gets"); !known {
		return err
	}
	s, _, err := v.searching()
	if err != nil {
		return err
	}
	return v.show("What a message gets", s.main())
}

// searching returns the page without results, and the key of the chosen project.
func (v *visit) searching() (s *chatSearch, workspace string, err error) {
	s = &chatSearch{whose: v.whose(), Group: v.r.FormValue("group"), Query: v.r.PostFormValue("query"), Place: v.r.PostFormValue("place")}
	s.Places, workspace, err = v.projects(s.Place)
	return s, workspace, err
}

// projects returns the groups and names of the person's projects, and the key of the one with a group.
func (v *visit) projects(group string) (list []choice, workspace string, err error) {
	groups, err := v.groups()
	for _, o := range groups {
		if o.Scope != "workspace" || o.Key == "" {
			continue
		}
		list = append(list, choice{o.Group, strings.TrimPrefix(v.nameOf(o), "the project ")})
		if o.Group == group {
			workspace = o.Key
		}
	}
	return list, workspace, err
}

func (v *visit) chatSearch() error {
	s, workspace, err := v.searching()
	if err != nil {
		return err
	}
	got, err := look(v, service.Search, func(in *service.SearchRequest) {
		in.Selector = v.ofWhom(s.Group)
		in.Workspace, in.Query, in.All = workspace, s.Query, true
	})
	if err != nil {
		return err
	}
	s.Asked, s.Threshold = true, sentence(got.Threshold())
	for _, f := range got.Facts {
		r := rated(f.Verdict, f.Scope, f.Strength)
		r.Text, r.Time = v.said(f.Text, ""), f.Since
		if f.Verdict == "shown" {
			s.Shown = append(s.Shown, r)
		} else {
			s.Others = append(s.Others, r)
		}
	}
	return v.show("What a message gets", s.main())
}
