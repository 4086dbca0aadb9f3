package main

import (
	"bytes"
	"context"
	"encoding/gob"
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
