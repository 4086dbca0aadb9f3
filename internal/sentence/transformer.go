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
	s.asked = l.asked.of(s.asked, x, n, s)
	s.attend(n)
	s.attended = l.out.of(s.attended, s.mixed, n, s)
	l.attended.addTo(x, s.attended)
	s.wide = l.wide.of(s.wide, x, n, s)
	for i, v := range s.wide {
		s.wide[i] = gelu(v)
	}
	s.narrow = l.narrow.of(s.narrow, s.wide, n, s)
	l.done.addTo(x, s.narrow)
}

// curve has values of a function. Between the steps it is nearly straight.
type curve struct {
	from, steps float32 // steps for 1
	values      []float32
}

// newCurve returns the curve of a function between two numbers.
func newCurve(from, to, steps int, of func(float64) float64) *curve {
	c := &curve{float32(from), float32(steps), make([]float32, (to-from)*steps+2)}
	for i := range c.values {
		c.values[i] = float32(of(float64(i)/float64(steps) + float64(from)))
	}
	return c
}

// at returns the value at x, which must be on the curve.
func (c *curve) at(x float32) float32 {
	at := (x - c.from) * c.steps
	i := int(at)
	return c.values[i] + (at-float32(i))*(c.values[i+1]-c.values[i])
}

const (
	geluEnd = 5  // from which on gelu(x) is x
	expEnd  = 16 // exponentials of numbers so much below the greatest one count as 0
)

var (
	geluShares = newCurve(-geluEnd, geluEnd, 128, func(x float64) float64 { return (1 + math.Erf(x/math.Sqrt2)) / 2 })
	exps       = newCurve(-expEnd, 0, 64, math.Exp)
)

// gelu returns the Gaussian error linear unit of x.
func gelu(x float32) float32 {
	switch {
	case x >= geluEnd:
		return x
	case x > -geluEnd:
		return x * geluShares.at(x)
	}
	return 0 // also for NaN
}

// of returns the output of a layer for n rows, in out if it is long enough.
func (l *layer) of(out, x []float32, n int, s *scratch) []float32 {
	out = sized(out, n*l.out)
	for r := range n {
		copy(out[r*l.out:], l.bias)
	}
	l.addTo(out, l.out, s.short(x, l.in, n), l.in, n)
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

// attend sets mixed to the mean of the values of all n rows, weighted by how much the row's query is like
// their keys, for each head. A row of asked has queries, keys and values.
func (s *scratch) attend(n int) {
	const size, rootOfSize = e5Width / e5Heads, 5.656854
	padded := (n + 31) &^ 31 // as the operations need
	s.mixed, s.keys, s.weights = sized(s.mixed, n*e5Width), sized(s.keys, size*padded), sized(s.weights, padded)
	clear(s.mixed)
	clear(s.keys)
	for head := 0; head < e5Width; head += size {
		part := func(r, of int) []float32 { // a part of a row
			at := (3*r+of)*e5Width + head
			return s.asked[at : at+size]
		}
		for r := range n {
			for i, v := range part(r, 1) {
				s.keys[i*padded+r] = v
			}
		}
		for r := range n {
			clear(s.weights)
			query := part(r, 0)
			for i := range query {
				query[i] *= 1 / rootOfSize
			}
			floats.addProducts(s.weights, s.keys, padded, query)
			soften(s.weights[:n])
			floats.addProducts(s.mixed[r*e5Width+head:][:size], s.asked[2*e5Width+head:], 3*e5Width, s.weights[:n])
		}
	}
}

// soften replaces numbers by their exponentials, divided by the sum of these.
func soften(x []float32) {
	most, whole := float32(-math.MaxFloat32), float32(epsilon)
	for _, v := range x {
		if v > most { // max, but for NaN
			most = v
		}
	}
	for i, v := range x {
		x[i] = 0
		if v > most-expEnd {
			x[i] = exps.at(v - most)
		}
		whole += x[i]
	}
	for i := range x {
		x[i] /= whole
	}
}
