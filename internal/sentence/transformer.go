package sentence

import (
	"context"
	"math"
)

// e5Prefix begins each text, as the model was trained.
const e5Prefix = "query: "

// encode returns the vector of a text, of length 1. It stops soon after the context ends. A text
// has at most e5Places pieces; the rest of a longer one does not count.
func (m *e5) encode(ctx context.Context, text string) ([]float32, error) {
	x := m.input(m.pieces.split(e5Prefix+text, e5Places))
	s := scratches.Get().(*scratch) //nolint:forcetypeassert // what New returns
	defer scratches.Put(s)
	for i := range m.layers {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		m.layers[i].apply(x, s)
	}
	out := make([]float32, e5Width)
	for i, v := range x {
		out[i%e5Width] += v
	}
	unit(out)
	return out, nil
}

// unit gives a vector the length 1.
func unit(x []float32) {
	length := 0.0
	for _, v := range x {
		length += float64(v) * float64(v)
	}
	by := float32(1 / math.Sqrt(max(length, epsilon)))
	for i := range x {
		x[i] *= by
	}
}

// input returns the vectors of pieces at their places.
func (m *e5) input(split []int) []float32 {
	x := make([]float32, len(split)*e5Width)
	for i, p := range split {
		to := x[i*e5Width : (i+1)*e5Width]
		m.table.row(p, to)
		for k, v := range m.places[i*e5Width : (i+1)*e5Width] {
			to[k] += v
		}
		m.first.apply(to)
	}
	return x
}

// apply replaces the rows of x by the output of the layer.
func (l *e5Layer) apply(x []float32, s *scratch) {
	n := len(x) / e5Width
	mixed := attention(l.asked.of(x, n, s), n)
	l.attended.addTo(x, l.out.of(mixed, n, s))
	wide := l.wide.of(x, n, s)
	for i, v := range wide {
		wide[i] = gelu(v)
	}
	l.done.addTo(x, l.narrow.of(wide, n, s))
}

const (
	geluEnd   = 5   // from which on gelu(x) is x
	geluSteps = 128 // for 1
)

// geluShares are gelu(x)/x, for x from -geluEnd on.
var geluShares = func() (all [2*geluEnd*geluSteps + 2]float32) {
	for i := range all {
		all[i] = float32(1+math.Erf((float64(i)/geluSteps-geluEnd)/math.Sqrt2)) / 2
	}
	return all
}()

// gelu returns the Gaussian error linear unit of x. Between the steps it is nearly straight.
func gelu(x float32) float32 {
	switch {
	case x >= geluEnd:
		return x
	case x > -geluEnd:
		at := (x + geluEnd) * geluSteps
		i := int(at)
		return x * (geluShares[i] + (at-float32(i))*(geluShares[i+1]-geluShares[i]))
	}
	return 0 // also for NaN
}

// of returns the output of a layer for n rows.
func (l *layer) of(x []float32, n int, s *scratch) []float32 {
	out := make([]float32, n*l.out)
	for r := range n {
		copy(out[r*l.out:], l.bias)
	}
	l.addTo(out, l.out, s.fixed(x, l.in, l.in, n, l.in), l.in, n)
	return out
}

// addTo adds rows to those of x, and rescales these.
func (o *rescaling) addTo(x, rows []float32) {
	for i, v := range rows {
		x[i] += v
	}
	for at := 0; at < len(x); at += len(o.gain) {
		o.apply(x[at : at+len(o.gain)])
	}
}

// attention returns for each row the mean of the values of all rows, weighted by how much its query
// is like their keys, for each head. A row of x has queries, keys and values.
func attention(x []float32, n int) []float32 {
	const size = e5Width / e5Heads
	out, weights := make([]float32, n*e5Width), make([]float64, n)
	for head := 0; head < e5Width; head += size {
		part := func(r, of int) []float32 { // a part of a row
			at := (3*r+of)*e5Width + head
			return x[at : at+size]
		}
		for r := range n {
			query, most := part(r, 0), math.Inf(-1)
			for o := range n {
				sum := float32(0)
				for i, v := range part(o, 1) {
					sum += v * query[i]
				}
				weights[o] = float64(sum) / math.Sqrt(size)
				most = max(most, weights[o])
			}
			whole := 0.0
			for o, w := range weights {
				weights[o] = math.Exp(w - most)
				whole += weights[o]
			}
			to := out[r*e5Width+head:][:size]
			for o, w := range weights {
				by := float32(w / whole)
				for i, v := range part(o, 2) {
					to[i] += by * v
				}
			}
		}
	}
	return out
}
