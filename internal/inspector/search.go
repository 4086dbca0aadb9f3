package inspector

import (
	"strings"

	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
)

// search is the page of the results for a message, with the reasons against the others.
type search struct {
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

func (v *visit) searchForm() error {
	if known, err := v.choosePerson("Search"); !known {
		return err
	}
	s, _, err := v.searching()
	if err != nil {
		return err
	}
	return v.show("Search", s.main())
}

// searching returns the page without results, and the key of the chosen project.
func (v *visit) searching() (s *search, workspace string, err error) {
	s = &search{whose: v.whose(), Group: v.r.FormValue("group"), Query: v.r.PostFormValue("query"), Place: v.r.PostFormValue("place")}
	groups, err := v.groups()
	for _, o := range groups {
		if o.Scope != "workspace" || o.Key == "" {
			continue
		}
		s.Places = append(s.Places, choice{o.Group, strings.TrimPrefix(v.nameOf(o), "the project ")})
		if o.Group == s.Place {
			workspace = o.Key
		}
	}
	return s, workspace, err
}

func (v *visit) search() error {
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
	return v.show("Search", s.main())
}
