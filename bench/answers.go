package main

import (
	"context"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti/embedded"
	"github.com/graphiti-proxy/graphiti-proxy/internal/sentence"
)

// pair is a question with texts of the same memory, of which at least one answers it.
type pair struct {
	question []float32
	texts    [][]float32
	answers  []bool
}

// mostTexts bounds the texts of a pair.
const mostTexts = 64

// addPairs adds the questions of the weeks with the earlier messages of their projects, and those of
// everywhere.tsv, as week 0, with the other lines of their memories.
func (c *corpus) addPairs(by *cached) error {
	vector := func(text string) []float32 {
		v, err := by.Encode(context.Background(), text[:min(len(text), 1000)])
		if err != nil {
			return make([]float32, sentence.Dimensions)
		}
		return c.centered(v)
	}
	for n := 1; n <= weekCount; n++ {
		talks, err := readWeek(n)
		if err != nil {
			return err
		}
		said := make(map[string][]*weekTurn) // by project
		for _, talk := range talks {
			for i := range talk.Turns {
				t := &talk.Turns[i]
				if t.Kind == "ask" {
					p := pair{question: vector(t.User)}
					for _, s := range said[talk.Project] {
						p.texts, p.answers = append(p.texts, vector(s.User)), append(p.answers, s.Kind != "ask" && holds(s.User, t.Expect))
					}
					c.addPair(n, p)
				}
				said[talk.Project] = append(said[talk.Project], t)
			}
		}
	}
	b, err := os.ReadFile(filepath.Join("bench", "testdata", "everywhere.tsv"))
	if err != nil {
		return err
	}
	var lines [][]string
	for line := range strings.Lines(string(b)) {
		if fields := strings.Split(strings.TrimSpace(line), "\t"); line[0] != '#' {
			lines = append(lines, fields[1:])
		}
	}
	for memory := range slices.Chunk(lines, 14) {
		for at, line := range memory {
			p := pair{question: vector(line[2])}
			for i, said := range memory {
				for k, text := range said {
					if k != 2 || i != at {
						p.texts, p.answers = append(p.texts, vector(text)), append(p.answers, i == at && k < 2)
					}
				}
			}
			c.addPair(0, p)
		}
	}
	return nil
}

// addPair adds a pair if it has both kinds of texts.
func (c *corpus) addPair(week int, p pair) {
	from := max(0, len(p.texts)-mostTexts)
	p.texts, p.answers = p.texts[from:], p.answers[from:]
	if slices.Contains(p.answers, true) && slices.Contains(p.answers, false) {
		c.pairs[week] = append(c.pairs[week], p)
	}
}

// newAnswers fits the map with which the answers to a question are more like it than the other texts:
// a softmax of their likenesses, by stochastic gradient descent from the identity.
func newAnswers(pairs []pair) (a embedded.Answers) {
	const (
		rounds   = 4
		rate     = 0.2
		sharpest = 0.07 // of likenesses in the softmax
		size     = sentence.Dimensions
	)
	weights := make([][size]float32, size)
	random, step := rand.New(rand.NewPCG(1, 2)), 0 //nolint:gosec // the same numbers in each run
	for range rounds {
		for _, n := range random.Perm(len(pairs)) {
			p := &pairs[n]
			by := rate * (1 - float32(step)/float32(rounds*len(pairs)))
			step++
			out := slices.Clone(p.question)
			for i := range out {
				out[i] += product(weights[i][:], p.question)
			}
			share, right, whole := make([]float64, len(p.texts)), 0.0, 0.0
			for k, text := range p.texts {
				share[k] = math.Exp(float64(product(text, out)) / sharpest)
				whole += share[k]
				right += share[k] * float64(bitOf(p.answers[k]))
			}
			change := make([]float32, size)
			for k, text := range p.texts {
				more := float32(share[k]*float64(bitOf(p.answers[k]))/right - share[k]/whole)
				for i, v := range text {
					change[i] += more * v
				}
			}
			for i := range weights {
				row, d := &weights[i], by*change[i]
				for k, v := range p.question {
					row[k] += d * v
				}
			}
		}
	}
	most := float32(0)
	for i := range weights {
		for _, v := range weights[i] {
			most = max(most, v, -v)
		}
	}
	a.Scale, a.Weights = max(most, 1e-9)/127, make([]int8, 0, size*size)
	for i := range weights {
		for _, v := range weights[i] {
			a.Weights = append(a.Weights, int8(math.Round(float64(v/a.Scale))))
		}
	}
	return a
}

func product(a, b []float32) float32 {
	var sum [4]float32
	for i := 0; i+4 <= len(a); i += 4 {
		x, y := (*[4]float32)(a[i:]), (*[4]float32)(b[i:])
		sum[0] += x[0] * y[0]
		sum[1] += x[1] * y[1]
		sum[2] += x[2] * y[2]
		sum[3] += x[3] * y[3]
	}
	return sum[0] + sum[1] + sum[2] + sum[3]
}
