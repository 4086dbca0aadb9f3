package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti/embedded"
)

// turnOf returns a turn for fitting: its rows with the gates.
func (a *weekAsk) turnOf(g *embedded.Fit) fitTurn {
	t := fitTurn{kind: a.Kind}
	if a.Person {
		t.kind = ""
	}
	asks := g.Wants(a.vec)
	for k := range a.found {
		c := &a.found[k]
		f := c.Features
		f[indexOf["asks"]] = asks
		if c.Statement {
			f[indexOf["states"]] = g.States.Of(c.Vec)
			f[indexOf["sure"]] = 1 / (1 + math.Exp(-4*f[indexOf["states"]]))
		}
		t.rows = append(t.rows, row{f, a.Kind == "ask" && holds(c.Text, a.Expect)})
	}
	return t
}

// figures are the figures of a week.
type figures struct{ asks, answered, lines, right, plain, disturbed, says, told, old, won float64 }

func (f *figures) String() string {
	return fmt.Sprintf("answered %.3f  routine %.3f  statements %.3f  precision %.3f  corrections %.3f  (%.2f lines)", f.answered/f.asks, f.disturbed/f.plain, f.told/f.says, f.right/max(1, f.lines), f.won/max(1, f.old), f.lines/f.asks)
}

// strengths returns the strengths of the answers, and the numbers of the answers by them.
func (a *weekAsk) strengths(w *embedded.Weights, g *embedded.Fit) (of []float64, order []int) {
	for i, r := range a.turnOf(g).rows {
		of, order = append(of, w.Strength(&r.Features)), append(order, i)
	}
	slices.SortStableFunc(order, func(x, y int) int { return cmp.Compare(of[y], of[x]) })
	return of, order
}

// shown returns the lines of a block.
func (a *weekAsk) shown(w *embedded.Weights, g *embedded.Fit) []embedded.Candidate {
	const mostLines, olderShare, newerShare = 3, 0.6, 0.25
	of, order := a.strengths(w, g)
	var out []embedded.Candidate
	for _, i := range order[:min(len(order), mostLines)] {
		share := olderShare
		if a.found[i].ValidAt.After(a.found[order[0]].ValidAt) || a.found[i].Features[indexOf["fact"]] > 0 {
			share = newerShare
		}
		if of[i] >= minScore && of[i] >= share*of[order[0]] {
			out = append(out, a.found[i])
		}
	}
	slices.SortStableFunc(out, func(x, y embedded.Candidate) int { return y.ValidAt.Compare(x.ValidAt) })
	return out
}

// strongest returns the strength of the best answer to a turn.
func (a *weekAsk) strongest(w *embedded.Weights, g *embedded.Fit) float64 {
	of, order := a.strengths(w, g)
	if len(of) == 0 {
		return 0
	}
	return of[order[0]]
}

func (f *figures) add(a *weekAsk, lines []embedded.Candidate) {
	switch {
	case a.Kind == "plain":
		f.plain++
		if len(lines) > 0 {
			f.disturbed++
		}
	case a.Kind == "say":
		f.says++
		f.told += float64(bitOf(len(lines) > 0))
	case a.Kind == "ask" && !a.Person:
		f.asks++
		hit, first := false, ""
		for _, l := range lines {
			f.lines++
			is := holds(l.Text, a.Expect)
			if is {
				f.right++
				hit = true
			}
			if first == "" && (is || holds(l.Text, a.Old)) {
				first = l.Text
			}
		}
		f.answered += float64(bitOf(hit))
		if len(a.Old) > 0 {
			f.old++
			f.won += float64(bitOf(first != "" && holds(first, a.Expect)))
		}
	}
}
