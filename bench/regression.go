package main

import (
	"math"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti/embedded"
)

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
