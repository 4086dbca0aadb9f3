package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti/embedded"
)

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
