package inspector

import (
	"strings"

	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
)

// graph is the page of the connections between things in a memory.
type graph struct {
	*about
	Places []navItem
	Nodes  []service.Node
	Edges  []edgeView
	Note   string
}

type edgeView struct {
	service.Edge
	FromName, ToName string
	Href             string
	State            string
}

func (v *visit) graph() error {
	if known, err := v.somebody("Graph"); !known {
		return err
	}
	a, err := v.meant("graph")
	if err != nil {
		return err
	}
	groups, err := v.groups()
	if err != nil {
		return err
	}
	g := graph{about: a}
	for _, o := range groups {
		if (o.Scope == "user" || o.Scope == "workspace") && !o.Empty {
			one := about{whose: a.whose, Owned: o}
			g.Places = append(g.Places, navItem{strings.TrimPrefix(v.nameOf(o), "the project "), one.Graph(), o.Group == a.Group})
		}
	}
	if a.Group != "" {
		got, err := look(v, service.Connections, func(in *service.GraphRequest) { in.Group = a.Group })
		if err != nil {
			return err
		}
		g.fill(v, &got)
	}
	return v.show("Graph", g.main(), graphScripts())
}

func (g *graph) fill(v *visit, got *service.Graph) {
	g.Nodes, g.Note = got.Nodes, got.Note
	names := make(map[string]string, len(got.Nodes))
	for _, n := range got.Nodes {
		names[n.ID] = n.Name
	}
	for _, e := range got.Edges {
		from, ok := names[e.From]
		to, too := names[e.To]
		if !ok || !too {
			continue
		}
		one := edgeView{Edge: e, FromName: from, ToName: to, Href: v.messageAt(e.ID, g.Group, g.Graph())}
		if e.State != "" {
			one.State = stateOf(string(e.State))
		}
		g.Edges = append(g.Edges, one)
	}
}
