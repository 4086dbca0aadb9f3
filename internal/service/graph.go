package service

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/words"
)

// GraphRequest is the input of Connections.
type GraphRequest struct {
	Selector
	Limit int    `json:"limit,omitempty"` // most nodes
	Query string `json:"query,omitempty"` // only nodes with a word of it
}

// Graph is a graph of entities and their connections.
type Graph struct {
	Nodes  []Node   `json:"nodes"` // by number of connections
	Edges  []Edge   `json:"edges"`
	Note   string   `json:"note,omitempty"` // limits of the graph
	Groups []string `json:"-"`
}

// Node is an entity of Graphiti's, or a name in facts and messages of the embedded memory.
type Node struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	Count   int    `json:"count"` // number of messages or facts about it
	Summary string `json:"summary,omitempty"`
}

// Edge connects two nodes by a fact, or by messages with both names.
type Edge struct {
	From  string `json:"from"`
	To    string `json:"to"`
	Says  string `json:"says"`            // the newest fact with both, or else message, truncated
	Count int    `json:"count,omitempty"` // number of messages with both
	Since string `json:"since,omitempty"`
	Until string `json:"until,omitempty"`
	State State  `json:"state,omitempty"` // validity of a fact
	ID    string `json:"id,omitempty"`    // message ID
}

// Connections shows the connections in a memory.
var Connections = Operation[GraphRequest, Graph]{
	Spec:    Spec{Name: "memory/graph", About: "Connections between entities: Graphiti's facts, or words that messages mention together", People: true},
	Default: GraphRequest{Limit: 60},
	Run:     withMemory((*Service).Connections),
	Audit:   func(in *GraphRequest, out *Graph) Entry { return in.audit("show connections", out.Groups) },
}

const (
	graphMessages = 2500 // number of newest messages in the embedded memory's graph
	maxSays       = 200  // characters of an edge
	edgesPerNode  = 3
)

// Connections returns up to Limit nodes of the groups of a recall.
func (sv *Service) Connections(ctx context.Context, in *GraphRequest) (g Graph, err error) {
	g.Nodes, g.Edges = []Node{}, []Edge{}
	if err := cmp.Or(CheckLimit(in.Limit), in.check()); err != nil {
		return g, err
	}
	targets, err := sv.targets(in.Selector)
	if err != nil {
		return g, err
	}
	ctx, cancel := context.WithTimeout(ctx, catalogTimeout)
	defer cancel()
	targets = sv.Recallable(targets)
	for _, t := range targets {
		g.Groups = append(g.Groups, t.Group)
	}
	limit := in.Limit
	if in.Query != "" {
		limit = maxListed
	}
	if sv.o.Remote {
		err = sv.related(ctx, targets, &g, limit)
	} else {
		err = sv.mentioned(ctx, &g, limit)
	}
	if in.Query != "" {
		g.match(in.Query, in.Limit)
	}
	return g, err
}

// match keeps up to limit nodes with a word of a query, and the edges between them.
func (g *Graph) match(query string, limit int) {
	asked, shown := words.Of(query, 64), make(map[string]bool)
	g.Nodes = slices.DeleteFunc(g.Nodes, func(n Node) bool {
		has := len(shown) < limit && slices.ContainsFunc(words.Of(n.Name, 64), func(w string) bool { return slices.Contains(asked, w) })
		if has {
			shown[n.ID] = true
		}
		return !has
	})
	g.Edges = slices.DeleteFunc(g.Edges, func(e Edge) bool { return !shown[e.From] || !shown[e.To] })
}

// web collects nodes and edges.
type web struct {
	nodes map[string]*Node
	edges []edge
	links map[string]int // number of connections per node
}

type edge struct {
	Edge
	said int // index of the message whose text the edge gets later
}

// into adds the limit most connected nodes to a graph, and the best edges between them. write
// sets the text of an edge.
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

// mentioned builds a graph from names that distilled facts and the newest messages mention
// together.
func (sv *Service) mentioned(ctx context.Context, g *Graph, limit int) error {
	end, err := sv.beginListing(ctx)
	if err != nil {
		return err
	}
	defer end()
	said, more, err := sv.newestSaid(ctx, g.Groups)
	if err != nil {
		return withRemedy(err)
	}
	facts, err := sv.newestFacts(ctx, g.Groups)
	if err != nil {
		return err
	}
	said = append(facts, said...) // an edge shows the first of its texts
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
	at := make(map[[2]string]int) // index of the edge
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
		e.Says, e.Since, e.Until, e.State, e.ID = cutTo(of.text, maxSays), dateOf(of.at), of.until, of.state, graphiti.MessageID(of.name)
	})
	return nil
}

// mostMentioned returns the names with the most messages, at least two each.
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

// saying is a message for a graph, or a distilled fact with the name of its last message.
type saying struct {
	name, text string
	at         time.Time
	state      State // of a fact
	until      string
}

// newestFacts returns the newest distilled facts of groups, the newest first, each once.
func (sv *Service) newestFacts(ctx context.Context, groups []string) (facts []saying, err error) {
	seen, now := make(map[string]bool), time.Now()
	for _, group := range groups {
		err := sv.eachDistilled(ctx, group, func(d *graphiti.Distilled) error {
			if len(d.Sources) > 0 && !seen[d.Name] {
				seen[d.Name] = true
				s := saying{name: d.Sources[len(d.Sources)-1], text: d.Text, at: d.Since}
				s.state, s.until = stateOf(&graphiti.Fact{ValidAt: d.Since, InvalidAt: d.Until}, now)
				facts = append(facts, s)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(facts, func(a, b saying) int { return b.at.Compare(a.at) })
	return facts[:min(graphMessages, len(facts))], nil
}

// newestSaid returns the newest messages of groups, the newest first, each once. more reports
// whether there are others.
func (sv *Service) newestSaid(ctx context.Context, groups []string) (said []saying, more bool, err error) {
	type heading struct {
		group int
		id    graphiti.ID
		at    time.Time
	}
	var all []heading
	seen := make(map[graphiti.ID]bool)
	for i, group := range groups {
		last := len(all) + graphMessages
		for r, err := range sv.o.Memory.Rows(ctx, group, graphiti.Filter{Newest: true}) {
			if err != nil {
				return nil, false, err
			}
			if seen[r.ID] {
				continue
			}
			seen[r.ID] = true
			if all = append(all, heading{i, r.ID, r.Said}); len(all) > last { // one more: there are others
				break
			}
		}
	}
	slices.SortStableFunc(all, func(a, b heading) int { return b.at.Compare(a.at) })
	more = len(all) > graphMessages
	ids := make([][]graphiti.ID, len(groups))
	for _, h := range all[:min(graphMessages, len(all))] {
		ids[h.group] = append(ids[h.group], h.id)
	}
	for i, group := range groups {
		if len(ids[i]) == 0 {
			continue
		}
		for r, err := range sv.o.Memory.Rows(ctx, group, graphiti.Filter{IDs: ids[i], Text: true}) {
			if err != nil {
				return nil, false, err
			}
			if c, ok := graphiti.ParseCurated(r.Text); ok {
				r.Text = c.Text
			}
			said = append(said, saying{name: r.Name, text: r.Text, at: r.Said})
		}
	}
	slices.SortStableFunc(said, func(a, b saying) int { return b.at.Compare(a.at) })
	return said, more, nil
}

// cutTo returns the start of a text in one line, with at most a number of characters.
func cutTo(text string, most int) string {
	runes := []rune(strings.Join(strings.Fields(strings.ToValidUTF8(text[:min(len(text), 8*most)], "")), " "))
	if len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return string(runes)
}
