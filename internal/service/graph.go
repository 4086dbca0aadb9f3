package service

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// GraphRequest is the input of Connections.
type GraphRequest struct {
	Selector
	Limit int `json:"limit,omitempty"` // most nodes
}

// Graph is what is connected with what.
type Graph struct {
	Nodes  []Node   `json:"nodes"` // the more connected first
	Edges  []Edge   `json:"edges"`
	Note   string   `json:"note,omitempty"` // what is not shown
	Groups []string `json:"-"`
}

// Node is an entity of Graphiti's; in the embedded memory, somebody or something that is
// mentioned.
type Node struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	Count   int    `json:"count"` // messages that mention it, or facts about it
	Summary string `json:"summary,omitempty"`
}

// Edge connects two nodes: a fact of Graphiti's, or messages that mention both.
type Edge struct {
	From  string `json:"from"`
	To    string `json:"to"`
	Says  string `json:"says"`            // the fact, or the newest message that mentions both, cut
	Count int    `json:"count,omitempty"` // messages that mention both
	Since string `json:"since,omitempty"`
	Until string `json:"until,omitempty"`
	State State  `json:"state,omitempty"` // of a fact
	ID    string `json:"id,omitempty"`    // of the message
}

// Connections shows what is connected with what in a memory.
var Connections = Operation[GraphRequest, Graph]{
	Spec:    Spec{Name: "memory/graph", About: "Connections between entities: Graphiti's facts, or words that messages mention together"},
	Default: GraphRequest{Limit: 60},
	Run: func(ctx context.Context, h *Host, in *GraphRequest) (Graph, error) {
		return h.Memory.Connections(ctx, in.Selector, in.Limit)
	},
	Audit: func(in *GraphRequest, out *Graph) Entry { return in.audit("show connections", out.Groups) },
	Own: func(ctx context.Context, h *Host, in *GraphRequest, own Selector) error {
		return ownSelector(ctx, h, &in.Selector, own)
	},
}

const (
	graphMessages = 2500 // the newest, from which the embedded memory's graph is made
	maxSays       = 200  // characters of an edge
	edgesPerNode  = 3
)

// Connections shows what is connected in the groups that a recall for the selector
// searches: at most limit nodes.
func (sv *Service) Connections(ctx context.Context, s Selector, limit int) (g Graph, err error) {
	g.Nodes, g.Edges = []Node{}, []Edge{}
	if err := cmp.Or(CheckLimit(limit), s.check()); err != nil {
		return g, err
	}
	targets, err := sv.targets(s)
	if err != nil {
		return g, err
	}
	ctx, cancel := context.WithTimeout(ctx, catalogTimeout)
	defer cancel()
	targets = sv.Recallable(targets)
	for _, t := range targets {
		g.Groups = append(g.Groups, t.Group)
	}
	if o, ok := sv.o.Memory.Outliner(); ok {
		err = sv.mentioned(ctx, o, &g, limit)
	} else {
		err = sv.related(ctx, targets, &g, limit)
	}
	return g, err
}

// web collects nodes and edges.
type web struct {
	nodes map[string]*Node
	edges []edge
	links map[string]int // of a node
}

type edge struct {
	Edge
	said int // index of the message that it says, where that is not written yet
}

// into puts the limit most connected nodes into a graph, and the edges between them, the
// best first. write writes what an edge says.
func (w *web) into(g *Graph, limit int, better func(a, b *Edge) int, write func(*edge)) {
	for i := range w.edges {
		n := max(1, w.edges[i].Count)
		w.links[w.edges[i].From] += n
		w.links[w.edges[i].To] += n
	}
	for _, n := range w.nodes {
		g.Nodes = append(g.Nodes, *n)
	}
	slices.SortFunc(g.Nodes, func(a, b Node) int {
		return cmp.Or(cmp.Compare(w.links[b.ID], w.links[a.ID]), cmp.Compare(b.Count, a.Count), cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
	g.Nodes = g.Nodes[:min(limit, len(g.Nodes))]
	shown := make(map[string]bool, len(g.Nodes))
	for i := range g.Nodes {
		shown[g.Nodes[i].ID] = true
	}
	kept := slices.DeleteFunc(w.edges, func(e edge) bool { return !shown[e.From] || !shown[e.To] })
	slices.SortStableFunc(kept, func(a, b edge) int { return better(&a.Edge, &b.Edge) })
	for i := range kept[:min(edgesPerNode*limit, len(kept))] {
		write(&kept[i])
		g.Edges = append(g.Edges, kept[i].Edge)
	}
}

// mentioned makes a graph of what the newest messages mention together.
func (sv *Service) mentioned(ctx context.Context, o graphiti.Outliner, g *Graph, limit int) error {
	said, more, err := sv.newestSaid(ctx, o, g.Groups)
	if err != nil {
		return withRemedy(err)
	}
	if more {
		g.Note = fmt.Sprintf("based on the newest %d messages", graphMessages)
	}
	m, tokens := newMentions(), make([][]token, len(said))
	for i := range said {
		tokens[i] = m.look(said[i].text)
	}
	names, counts := make([][]string, len(said)), make(map[string]int)
	for i := range said {
		names[i] = m.lookAgain(tokens[i])
		for _, name := range names[i] {
			counts[name]++
		}
	}
	w := web{nodes: make(map[string]*Node), links: make(map[string]int)}
	common := mostMentioned(counts, 4*limit)
	for name := range common {
		w.nodes[name] = &Node{ID: graphiti.MessageID("mention " + name), Name: m.first[name], Count: counts[name]}
	}
	at := make(map[[2]string]int) // where the edge is
	for i := range said {         // the newest first
		list := slices.DeleteFunc(names[i], func(name string) bool { return !common[name] })
		for a, from := range list {
			for _, to := range list[a+1:] {
				pair := [2]string{min(from, to), max(from, to)}
				j, known := at[pair]
				if !known {
					j = len(w.edges)
					at[pair] = j
					w.edges = append(w.edges, edge{Edge{From: w.nodes[pair[0]].ID, To: w.nodes[pair[1]].ID}, i})
				}
				w.edges[j].Count++
			}
		}
	}
	w.into(g, limit, func(a, b *Edge) int { return cmp.Compare(b.Count, a.Count) }, func(e *edge) {
		of := &said[e.said]
		e.Says, e.Since, e.ID = cutTo(of.text, maxSays), dateOf(of.at), graphiti.MessageID(of.name)
	})
	return nil
}

// mostMentioned are the names that most messages mention, and two at least.
func mostMentioned(counts map[string]int, most int) map[string]bool {
	var list []string
	for name, n := range counts {
		if n >= 2 {
			list = append(list, name)
		}
	}
	slices.SortFunc(list, func(a, b string) int { return cmp.Or(cmp.Compare(counts[b], counts[a]), strings.Compare(a, b)) })
	all := make(map[string]bool)
	for _, name := range list[:min(most, len(list))] {
		all[name] = true
	}
	return all
}

// saying is a message for a graph.
type saying struct {
	name, text string
	at         time.Time
}

// newestSaid reads the newest messages of groups, the newest first, each once; more says
// that there are others.
func (sv *Service) newestSaid(ctx context.Context, o graphiti.Outliner, groups []string) (said []saying, more bool, err error) {
	type one struct {
		group int
		place int64
		at    time.Time
	}
	var all []one
	seen := make(map[uint64]bool)
	for i, group := range groups {
		err := o.Outline(ctx, group, func(h *graphiti.Heading) {
			if !seen[h.Name] {
				seen[h.Name] = true
				all = append(all, one{i, h.Place, h.Said})
			}
		})
		if err != nil {
			return nil, false, err
		}
	}
	slices.SortStableFunc(all, func(a, b one) int { return b.at.Compare(a.at) })
	more = len(all) > graphMessages
	places := make([][]int64, len(groups))
	for _, m := range all[:min(graphMessages, len(all))] {
		places[m.group] = append(places[m.group], m.place)
	}
	for i, group := range groups {
		episodes, err := o.EpisodesAt(ctx, group, places[i])
		if err != nil {
			return nil, false, err
		}
		for j := range episodes {
			side := episodes[j].Sides()[0]
			if c, ok := graphiti.ParseCurated(side.Text); ok {
				side.Text = c.Text
			}
			said = append(said, saying{side.Name, side.Text, episodes[j].ValidAt})
		}
	}
	slices.SortStableFunc(said, func(a, b saying) int { return b.at.Compare(a.at) })
	return said, more, nil
}

// cutTo returns the start of a text as one line, of at most some characters.
func cutTo(text string, most int) string {
	runes := []rune(strings.Join(strings.Fields(strings.ToValidUTF8(text[:min(len(text), 8*most)], "")), " "))
	if len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return string(runes)
}
