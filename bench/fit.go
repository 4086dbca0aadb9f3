package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/gob"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti/embedded"
	"github.com/graphiti-proxy/graphiti-proxy/internal/sentence"
)

// cached is an encoder that keeps vectors in a file.
type cached struct {
	embedded.Encoder
	path string

	mu sync.Mutex
	of map[string][]float32
}

// newCached returns an encoder with the model in the program.
func newCached(path string) (*cached, error) {
	m, err := sentence.Load()
	if err != nil {
		return nil, err
	}
	c := &cached{Encoder: m, path: path, of: make(map[string][]float32)}
	if b, err := os.ReadFile(path); path != "" && err == nil {
		err = gob.NewDecoder(bytes.NewReader(b)).Decode(&c.of)
		return c, err
	}
	return c, nil
}

func (c *cached) Encode(ctx context.Context, text string) ([]float32, error) {
	c.mu.Lock()
	v := c.of[text]
	c.mu.Unlock()
	if v != nil {
		return v, nil
	}
	v, err := c.Encoder.Encode(ctx, text)
	if err == nil {
		c.mu.Lock()
		c.of[text] = v
		c.mu.Unlock()
	}
	return v, err
}

func (c *cached) save() error {
	if c.path == "" {
		return nil
	}
	var b bytes.Buffer
	if err := gob.NewEncoder(&b).Encode(c.of); err != nil {
		return err
	}
	return os.WriteFile(c.path, b.Bytes(), 0o600)
}

// example is a vector with its class.
type example struct {
	vec []float32
	is  bool
}

// newGate fits a logistic regression, in which both classes weigh the same. decay keeps its
// weights small.
func newGate(all []example, decay float64) (g embedded.Gate) {
	var n [2]float64
	mean := make([]float64, len(all[0].vec))
	for _, e := range all {
		n[bitOf(e.is)]++
		for i, x := range e.vec {
			mean[i] += float64(x) / float64(len(all))
		}
	}
	spread := 0.0
	for _, e := range all {
		for i, x := range e.vec {
			d := float64(x) - mean[i]
			spread += d * d / float64(len(all)*len(mean))
		}
	}
	spread = math.Sqrt(spread)
	x := make([][]float32, len(all))
	for k, e := range all {
		x[k] = make([]float32, len(mean))
		for i := range mean {
			x[k][i] = float32((float64(e.vec[i]) - mean[i]) / spread)
		}
	}
	b, bias := make([]float64, len(mean)), 0.0
	const rounds, rate, momentum = 200, 0.5, 0.9
	grad, speed, biasSpeed := make([]float64, len(mean)), make([]float64, len(mean)), 0.0
	for range rounds {
		clear(grad)
		biasGrad := 0.0
		for k, e := range all {
			sum := bias
			for i, v := range x[k] {
				sum += b[i] * float64(v)
			}
			d := (1/(1+math.Exp(-sum)) - float64(bitOf(e.is))) / (2 * n[bitOf(e.is)])
			biasGrad += d
			for i, v := range x[k] {
				grad[i] += d * float64(v)
			}
		}
		biasSpeed = momentum*biasSpeed - rate*biasGrad
		bias += biasSpeed
		for i := range b {
			speed[i] = momentum*speed[i] - rate*(grad[i]+decay*b[i])
			b[i] += speed[i]
		}
	}
	for i := range b {
		g.Weights[i] = float32(b[i] / spread)
		bias -= b[i] * mean[i] / spread
	}
	g.Bias = float32(bias)
	return g
}

func bitOf(is bool) int {
	if is {
		return 1
	}
	return 0
}

// corpus has the examples of each gate, by week; the other lists are week 0.
type corpus struct {
	asks, states [weekCount + 1][]example
	pairs        [weekCount + 1][]pair
	mean         [sentence.Dimensions]float32
}

func newCorpus(by *cached) (c *corpus, err error) {
	c = &corpus{}
	seen := make(map[string]bool)
	add := func(to *[]example, text string, is bool) error {
		v, err := by.Encode(context.Background(), text[:min(len(text), 1000)])
		if key := fmt.Sprintf("%p %t %s", to, is, text); err == nil && !seen[key] {
			seen[key] = true
			*to = append(*to, example{v, is})
		}
		return err
	}
	for n := 1; n <= weekCount; n++ {
		talks, err := readWeek(n)
		if err != nil {
			return nil, err
		}
		for _, talk := range talks {
			for _, t := range talk.Turns {
				var err error
				switch t.Kind {
				case "ask":
					err = add(&c.asks[n], t.User, true)
				case "plain":
					err = add(&c.asks[n], t.User, false)
				}
				if err == nil {
					err = add(&c.states[n], t.User, t.Kind == "say" || t.Kind == "fix")
				}
				if err != nil {
					return nil, err
				}
			}
		}
	}
	for _, list := range []struct {
		file         string
		column       int
		asks, states int // 1 for yes, 0 for no, -1 for no example
	}{
		{"everyday.tsv", 2, 0, 0}, {"person.tsv", 0, -1, 1}, {"person.tsv", 1, 1, 0}, {"person.tsv", 2, 1, 0},
		{"corrections.tsv", 1, -1, 1}, {"corrections.tsv", 2, -1, 1}, {"corrections.tsv", 3, 1, 0},
	} {
		b, err := os.ReadFile(filepath.Join("bench", "testdata", list.file))
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(string(b)) {
			fields := strings.Split(strings.TrimSpace(line), "\t")
			if line[0] == '#' || len(fields) <= list.column {
				continue
			}
			if list.asks >= 0 {
				err = add(&c.asks[0], fields[list.column], list.asks == 1)
			}
			if err == nil {
				err = add(&c.states[0], fields[list.column], list.states == 1)
			}
			if err != nil {
				return nil, err
			}
		}
	}
	c.center()
	return c, c.addPairs(by)
}

// center subtracts the mean of all vectors from them if they are all near it: otherwise every two
// texts are alike.
func (c *corpus) center() {
	n := 0.0
	var sum [sentence.Dimensions]float64
	for _, list := range slices.Concat(c.asks[:], c.states[:]) {
		for _, e := range list {
			n++
			for i, v := range e.vec {
				sum[i] += float64(v)
			}
		}
	}
	length := 0.0
	for i, v := range sum {
		c.mean[i] = float32(v / n)
		length += v / n * v / n
	}
	if length < 0.25 {
		clear(c.mean[:])
		return
	}
	for _, list := range slices.Concat(c.asks[:], c.states[:]) {
		for k := range list {
			list[k].vec = c.centered(list[k].vec)
		}
	}
}

// centered returns a vector less the mean, of length 1.
func (c *corpus) centered(vec []float32) []float32 {
	out, length := make([]float32, len(vec)), 0.0
	for i, v := range vec {
		out[i] = v - c.mean[i]
		length += float64(out[i]) * float64(out[i])
	}
	for i := range out {
		out[i] /= float32(math.Sqrt(length) + 1e-9)
	}
	return out
}

// decay is that of most gates, chosen so that most values are between -1 and 1.
const decay = 0.25

// fit fits the gates to all weeks but some.
func (c *corpus) fit(without ...int) (g embedded.Fit) {
	var asks, tells, states []example
	var pairs []pair
	for n := range c.asks {
		if n == 0 || !slices.Contains(without, n) {
			pairs = append(pairs, c.pairs[n]...)
			asks, states = append(asks, c.asks[n]...), append(states, c.states[n]...)
			for _, e := range c.asks[n] {
				if e.is {
					tells = append(tells, example{e.vec, false})
				}
			}
			for _, e := range c.states[n] {
				if e.is {
					tells = append(tells, e)
				}
			}
		}
	}
	g.Center, g.Asks, g.Tells, g.States = c.mean, newGate(asks, decay), newGate(tells, 0.1), newGate(states, decay)
	g.Answers = newAnswers(pairs)
	return g
}

// row is one possible answer.
type row struct {
	embedded.Features
	is bool
}

// fitTurn are the possible answers to a turn.
type fitTurn struct {
	kind string
	rows []row
}

// fitScore fits the score of the answers to a question.
func fitScore(turns []fitTurn, alike float64) (w embedded.Weights) {
	var all [][]float64
	var is []bool
	for i := range turns {
		if t := &turns[i]; t.kind == "ask" || t.kind == "plain" {
			for k := range t.rows {
				if x := t.rows[k].Features[:]; x[indexOf["asks"]] > embedded.LeastGate { // no other has a score
					all, is = append(all, x), append(is, t.rows[k].is)
				}
			}
		}
	}
	mean, deviation := spread(all)
	for k, name := range embedded.FeatureNames {
		w.Features[k] = embedded.Feature{Name: name, Weight: 1, Mean: rounded4(mean[k]), Deviation: rounded4(max(deviation[k], 0.01))}
	}
	scaled := make([][]float64, len(all))
	for i, x := range all {
		for k := range x {
			scaled[i] = append(scaled[i], w.Features[k].Of(x[k]))
		}
	}
	b, bias := regression(scaled, is)
	for k := range w.Features {
		w.Features[k].Weight = rounded4(b[k])
	}
	for name, weight := range given {
		w.Features[indexOf[name]].Weight = weight
	}
	w.Bias, w.Alike = bias, alike
	return w
}

// given are the weights that weeks cannot teach: none of their questions names a time.
var given = map[string]float64{"dated": 0.5}

// spread returns the means and deviations of columns.
func spread(all [][]float64) (mean, deviation []float64) {
	mean, deviation = make([]float64, len(all[0])), make([]float64, len(all[0]))
	for _, x := range all {
		for k := range x {
			mean[k] += x[k] / float64(len(all))
		}
	}
	for _, x := range all {
		for k := range x {
			deviation[k] += (x[k] - mean[k]) * (x[k] - mean[k]) / float64(len(all))
		}
	}
	for k := range deviation {
		deviation[k] = math.Sqrt(deviation[k]) + 1e-6
	}
	return mean, deviation
}

// regression fits a logistic regression with Newton's method.
func regression(all [][]float64, is []bool) (b []float64, bias float64) {
	mean, deviation := spread(all)
	n := len(mean) + 1
	sum := make([]float64, n)
	for range 12 {
		grad, h := make([]float64, n), make([][]float64, n)
		for k := range h {
			h[k] = make([]float64, n)
		}
		x := make([]float64, n)
		for i := range all {
			s := sum[n-1]
			for k := range mean {
				x[k] = (all[i][k] - mean[k]) / deviation[k]
				s += sum[k] * x[k]
			}
			x[n-1] = 1
			p := 1 / (1 + math.Exp(-s))
			for k := range x {
				grad[k] += (p - float64(bitOf(is[i]))) * x[k]
				for j := range x {
					h[k][j] += p * (1 - p) * x[k] * x[j]
				}
			}
		}
		for k := range mean {
			grad[k] += sum[k]
			h[k][k]++
		}
		for k, step := range solve(h, grad) {
			sum[k] -= step
		}
	}
	bias, b = sum[n-1], make([]float64, n-1)
	for k := range b {
		b[k] = sum[k] / deviation[k]
		bias -= b[k] * mean[k]
	}
	return b, bias
}

func rounded4(x float64) float64 { return math.Round(1e4*x) / 1e4 }

func solve(a [][]float64, y []float64) []float64 {
	n, x := len(y), make([]float64, len(y))
	for i := range n {
		p := i
		for k := i + 1; k < n; k++ {
			if math.Abs(a[k][i]) > math.Abs(a[p][i]) {
				p = k
			}
		}
		a[i], a[p], y[i], y[p] = a[p], a[i], y[p], y[i]
		for k := i + 1; k < n; k++ {
			m := a[k][i] / a[i][i]
			for j := i; j < n; j++ {
				a[k][j] -= m * a[i][j]
			}
			y[k] -= m * y[i]
		}
	}
	for i := n - 1; i >= 0; i-- {
		x[i] = y[i]
		for j := i + 1; j < n; j++ {
			x[i] -= a[i][j] * x[j]
		}
		x[i] /= a[i][i]
	}
	return x
}

var indexOf = func() map[string]int {
	m := make(map[string]int)
	for i, name := range embedded.FeatureNames {
		m[name] = i
	}
	return m
}()

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
	const mostLines, furtherShare = 3, 0.25
	of, order := a.strengths(w, g)
	var out []embedded.Candidate
	for _, i := range order[:min(len(order), mostLines)] {
		if of[i] >= minScore && of[i] >= furtherShare*of[order[0]] {
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

// A fitter has the turns of all weeks, without and with facts.
type fitter struct {
	corpus *corpus
	fitted map[string]*embedded.Fit // by the weeks left out
	turns  [len(fitModes)][weekCount + 1][]weekAsk
	aim    float64 // share of routine requests with a block
	alike  float64 // of the numbers in the program
}

// fitModes are the memories that the score is fitted to; keys is the parameter of replay.
var fitModes = [...]struct {
	name string
	keys float64
}{{"no model", -1}, {"half of the keys", 0.5}}

// without returns the gates fitted to all weeks but some.
func (f *fitter) without(weeks ...int) *embedded.Fit {
	slices.Sort(weeks)
	key := fmt.Sprint(slices.Compact(weeks))
	if f.fitted[key] == nil {
		g := f.corpus.fit(weeks...)
		f.fitted[key] = &g
	}
	return f.fitted[key]
}

// each calls do for the turns of all weeks but one, with gates fitted without either week.
func (f *fitter) each(left int, do func(a *weekAsk, g *embedded.Fit)) {
	for m := range f.turns {
		for n := 1; n <= weekCount; n++ {
			for i := range f.turns[m][n] {
				if n != left {
					do(&f.turns[m][n][i], f.without(left, n))
				}
			}
		}
	}
}

// train returns the weights fitted to all weeks but one. A share of their routine requests has a
// candidate of the strength of recall.min_score.
func (f *fitter) train(left int) embedded.Weights {
	var all []fitTurn
	f.each(left, func(a *weekAsk, g *embedded.Fit) { all = append(all, a.turnOf(g)) })
	w := fitScore(all, f.alike)
	var strengths []float64
	f.each(left, func(a *weekAsk, g *embedded.Fit) {
		if a.Kind == "plain" {
			strengths = append(strengths, a.strongest(&w, g))
		}
	})
	slices.Sort(strengths)
	bar := strengths[int((1-f.aim)*float64(len(strengths)))]
	w.Bias = rounded4(w.Bias + math.Log(minScore/(1-minScore)) - math.Log(bar/(1-bar)))
	return w
}

// shipped is the folder of the numbers in the program.
var shipped = filepath.Join("graphiti", "embedded", "fitted")

// write writes the numbers into a folder.
func (f *fitter) write(folder string, by *cached, left int) error {
	w, g := f.train(left), *f.without(left)
	w.Origin = "go run ./bench fit -write, fitted to bench/testdata/weeks"
	var err error
	if g.Self, err = f.corpus.fitSelf(by, left); err != nil {
		return err
	}
	b, err := json.MarshalIndent(w, "", "\t")
	if err != nil {
		return err
	}
	var file bytes.Buffer
	for _, part := range []any{&g.Gates, g.Answers.Scale, g.Answers.Weights} {
		if err := binary.Write(&file, binary.LittleEndian, part); err != nil {
			return err
		}
	}
	path := filepath.Join(folder, by.Name())
	return errors.Join(os.WriteFile(path+".bin", file.Bytes(), 0o644), os.WriteFile(path+".json", append(b, '\n'), 0o644)) //nolint:gosec // source files
}

// newFitter plays all weeks.
func newFitter(by *cached, aim float64) (f *fitter, err error) {
	f = &fitter{fitted: make(map[string]*embedded.Fit), aim: aim, alike: embedded.FitOf(by.Name()).Score.Alike}
	if f.corpus, err = newCorpus(by); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "graphiti-proxy-fit-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	for m, mode := range fitModes {
		for n := 1; n <= weekCount; n++ {
			if f.turns[m][n], err = replay(n, dir, by, f.without(n), mode.keys); err != nil {
				return nil, fmt.Errorf("week %d: %w", n, err)
			}
		}
	}
	return f, nil
}

func fitCommand(args []string) error {
	fs := flag.NewFlagSet("fit", flag.ContinueOnError)
	cache := fs.String("cache", "", "file for the vectors of the next run")
	write := fs.Bool("write", false, "write the numbers fitted to all weeks into the program")
	aim := fs.Float64("routine", 0.035, "share of routine requests with a block at which the figures are compared")
	leave := fs.Int("without", 0, "with -write: the week to leave out, to measure the program with it; 0 leaves out no week")
	if err := fs.Parse(args); err != nil {
		return err
	}
	by, err := newCached(*cache)
	if err != nil {
		return err
	}
	f, err := newFitter(by, *aim)
	if err := errors.Join(err, by.save()); err != nil {
		return err
	}
	for left := 1; left <= weekCount; left++ {
		w, g := f.train(left), f.without(left)
		for m, mode := range fitModes {
			var of figures
			for i := range f.turns[m][left] {
				of.add(&f.turns[m][left][i], f.turns[m][left][i].shown(&w, g))
			}
			fmt.Printf("%-17s week %d left out: %s\n", mode.name, left, &of)
		}
	}
	if *write {
		return f.write(shipped, by, *leave)
	}
	return nil
}

// minScore is the default of recall.min_score.
const minScore = 0.18
