package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// related builds a graph from the facts of searches for the newest messages, and their entities.
func (sv *Service) related(ctx context.Context, targets []graphiti.Target, g *Graph, limit int) error {
	w := web{nodes: make(map[string]*Node), links: make(map[string]int)}
	says := make(map[string][]string) // facts by node
	now, loose := time.Now(), 0
	for _, t := range targets {
		said, _, err := sv.said(ctx, t, true, askedBy)
		var unlisted *graphiti.UnlistedError
		if errors.As(err, &unlisted) {
			g.Note = joinNotes(g.Note, "the memory lists no messages of "+t.Group)
		} else if err != nil {
			return err
		}
		err = sv.searchBy(ctx, t.Group, said, func(f *graphiti.Fact) {
			if f.Source == "" || f.Target == "" {
				loose++
				return
			}
			for _, id := range []string{f.Source, f.Target} {
				if w.nodes[id] == nil {
					w.nodes[id] = &Node{ID: id}
				}
				w.nodes[id].Count++
				says[id] = append(says[id], f.Text)
			}
			e := Edge{From: f.Source, To: f.Target, Says: cutTo(f.Text, maxSays), Since: dateOf(f.ValidAt)}
			e.State, e.Until = stateOf(f, now)
			w.edges = append(w.edges, edge{Edge: e})
		})
		if err != nil {
			return err
		}
		if err := sv.nameNodes(ctx, t.Group, said, w.nodes); err != nil {
			g.Note = joinNotes(g.Note, fmt.Sprintf("the names of entities are unknown: %v", err))
		}
	}
	unnamed := false
	for id, n := range w.nodes {
		if n.Name == "" {
			unnamed = true
			n.Name = sharedWords(says[id])
		}
	}
	g.Note = joinNotes(g.Note, fmt.Sprintf("Graphiti cannot list facts: these are the search results for each of the %d newest messages of a group; there may be more", askedBy))
	if unnamed {
		g.Note = joinNotes(g.Note, "Graphiti's REST service does not name entities: an entity without a name shows the common words of its facts, or the beginning of its only fact")
	}
	if loose > 0 {
		g.Note = joinNotes(g.Note, fmt.Sprintf("%d facts without entities are not shown", loose))
	}
	valid := func(e *Edge) int {
		if e.State == Valid {
			return 0
		}
		return 1
	}
	w.into(g, limit, func(a, b *Edge) int { return cmp.Or(cmp.Compare(valid(a), valid(b)), cmp.Compare(b.Since, a.Since)) }, func(*edge) {})
	return nil
}

func joinNotes(a, b string) string {
	if a == "" {
		return b
	}
	return a + "; " + b
}

// nameNodes sets the names and summaries that the memory returns.
func (sv *Service) nameNodes(ctx context.Context, group string, said []Known, nodes map[string]*Node) error {
	for _, s := range said[:min(askedBy, len(said))] {
		query := strings.ToValidUTF8(s.Text[:min(maxAskedBy, len(s.Text))], "")
		found, ok, err := sv.o.Memory.Entities(ctx, group, query, foundBy)
		if err != nil || !ok {
			return withRemedy(err)
		}
		for _, e := range found {
			if n := nodes[e.UUID]; n != nil {
				n.Name, n.Summary = cutTo(e.Name, maxBegins), cutTo(e.Summary, maxSays)
			}
		}
	}
	return nil
}

// sharedWords returns the longest sequence of words in all facts of an entity, or the beginning
// of its only fact.
func sharedWords(facts []string) string {
	slices.Sort(facts)
	facts = slices.Compact(facts)
	if len(facts) == 1 {
		return cutTo(facts[0], 40)
	}
	first, best := strings.Fields(facts[0]), ""
	for i := range first {
		for j := len(first); j > i; j-- {
			row := strings.Trim(strings.Join(first[i:j], " "), ".,;:!?")
			if len(row) <= len(best) {
				break
			}
			if !slices.ContainsFunc(facts[1:], func(f string) bool { return !strings.Contains(f, row) }) {
				best = row
			}
		}
	}
	return cmp.Or(cutTo(best, maxBegins), cutTo(facts[0], 40))
}
