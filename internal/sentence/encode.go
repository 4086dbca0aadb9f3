package sentence

import (
	"context"
	"math"
	"sync"
)

// maxPieces bounds the pieces of a text; the rest of a longer one does not count.
const maxPieces = 128

// margin is the number of zero rows before and after the rows of a text.
const margin = 2

// scratch is the memory of one encode.
type scratch struct {
	all    []float32 // of each piece, its vector and its branches
	inputs []float32 // of each piece, for all branches
	rows   []float32 // of a branch, with its margins
	y      []float32

	whole []int16 // of fixed
	units []float32
	bytes []int8
	sums  []int32

	asked, attended, wide, narrow []float32 // outputs of the layers of E5
	mixed, keys, weights          []float32 // of its attention
}

// scratches saves the allocations of an Encode. The collector empties it.
var scratches = sync.Pool{New: func() any { return new(scratch) }}

// fit sets the sizes for n pieces.
func (s *scratch) fit(n int) {
	s.all, s.inputs = sized(s.all, n*joined), sized(s.inputs, n*len(branches)*narrow)
	s.rows, s.y = sized(s.rows, (n+2*margin)*narrow), sized(s.y, n*narrow)
}

// sized returns a slice of n elements, of any values.
func sized[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

// encode returns the vector of a text, of length 1. It stops soon after the context ends.
func (m *universal) encode(ctx context.Context, text string) ([]float32, error) {
	s := scratches.Get().(*scratch) //nolint:forcetypeassert // what New returns
	defer scratches.Put(s)
	rows := m.pieces.split(text, maxPieces)
	n := len(rows)
	s.fit(n)
	for i, row := range rows {
		m.table.row(row, s.all[i*joined:i*joined+width])
	}
	const all = len(branches) * narrow
	for i := range n {
		copy(s.inputs[i*all:(i+1)*all], m.projectBias)
	}
	m.project.addTo(s.inputs, all, s.fixed(s.all, joined, width, n, width), width, n)
	for i := range n {
		m.inner.apply(s.inputs[i*all : (i+1)*all])
	}
	for b := range branches {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		m.branch(b, s, n)
	}
	return m.dense(s, m.outer.sum(s.all), n), nil
}

// branch writes the output of a branch for n pieces to the rows of all.
func (m *universal) branch(b int, s *scratch, n int) {
	// Adjacent rows are adjacent in memory, so a window of them is one slice.
	clear(s.rows)
	text := s.rows[margin*narrow : (margin+n)*narrow]
	for i := range n {
		copy(text[i*narrow:(i+1)*narrow], s.inputs[(i*len(branches)+b)*narrow:])
	}
	for _, l := range []*layer{&m.first[b], &m.second[b]} {
		for i := range n {
			copy(s.y[i*narrow:(i+1)*narrow], l.bias)
		}
		whole := s.fixed(s.rows, narrow, narrow, n+2*margin, l.in)
		whole.values = whole.values[(margin-branches[b].before)*narrow:]
		l.addTo(s.y, narrow, whole, narrow, n)
		for i, v := range s.y {
			text[i] += max(0, v)
		}
	}
	for i := range n {
		copy(s.all[i*joined+width+b*narrow:], text[i*narrow:(i+1)*narrow])
	}
}

// dense returns the vector of a text from the sum of those of its n pieces.
func (m *universal) dense(s *scratch, sum []float32, n int) []float32 {
	mean := make([]float32, width)
	for d, v := range m.average.bias {
		mean[d] = v * float32(n)
	}
	product := func(x *matrix, out, in []float32) { x.addTo(out, 0, s.fixed(in, 0, x.in, 1, x.in), 0, 1) }
	product(&m.average.matrix, mean, sum)
	for d := range mean {
		mean[d] /= float32(math.Sqrt(float64(n)))
	}
	y0, y1, y2, z := make([]float32, hidden), make([]float32, hidden), make([]float32, width), make([]float32, width)
	product(&m.d0, y0, mean)
	rectify(y0)
	product(&m.p1, y1, mean)
	product(&m.d1, y1, y0)
	rectify(y1)
	product(&m.d2, y2, y1)
	rectify(y2)
	product(&m.p3, z, y1)
	product(&m.d3, z, y2)
	for d, v := range z {
		z[d] = float32(math.Tanh(float64(v)))
	}
	unit(z)
	return z
}

// fixed are rows of values as whole multiples of their units. Products of these are exact, and equal on
// all processors.
type fixed struct {
	values []int16
	units  []float32
	bytes  []int8  // the same values, if they fit
	sums   []int32 // of the bytes of each row
}

// fixed returns n rows of size values, each step values after the previous one, with one unit, so that
// the sum of terms products with weights fits in 32 bits. The next call overwrites the result.
func (s *scratch) fixed(x []float32, step, size, n, terms int) fixed {
	var most float32
	for r := range n {
		most = max(most, floats.largest(x[r*step:r*step+size]))
	}
	by := float32(min(math.MaxInt16, math.MaxInt32/(-math.MinInt8*terms))) / max(most, epsilon)
	s.whole, s.units = sized(s.whole, n*size), sized(s.units, n)
	for r := range n {
		s.units[r] = 1 / by
		floats.round(s.whole[r*size:(r+1)*size], x[r*step:r*step+size], by)
	}
	return fixed{values: s.whole, units: s.units}
}

// short returns n rows of size values that fit in a byte, with a unit for each row. The next call
// overwrites the result.
func (s *scratch) short(x []float32, size, n int) fixed {
	s.whole, s.units, s.bytes, s.sums = sized(s.whole, n*size), sized(s.units, n), sized(s.bytes, n*size), sized(s.sums, n)
	for r := range n {
		row, whole := x[r*size:(r+1)*size], s.whole[r*size:(r+1)*size]
		by := math.MaxInt8 / max(floats.largest(row), epsilon)
		floats.round(whole, row, by)
		s.units[r], s.sums[r] = 1/by, shorten(s.bytes[r*size:], whole)
	}
	return fixed{s.whole, s.units, s.bytes, s.sums}
}

// shorten copies values that fit in a byte, and returns their sum.
func shorten(out []int8, in []int16) (sum int32) {
	out = out[:len(in)]
	for i, v := range in {
		out[i] = int8(v) //nolint:gosec // it fits
		sum += int32(v)
	}
	return sum
}

func rectify(x []float32) {
	for i, v := range x {
		x[i] = max(0, v)
	}
}

// apply rescales a vector.
func (o *rescaling) apply(x []float32) {
	shift, by := normal(x)
	gain, bias := o.gain[:len(x)], o.bias[:len(x)]
	for i, v := range x {
		x[i] = (v+shift)*by*gain[i] + bias[i]
	}
}

// sum rescales the rows of x, and returns their sum.
func (o *rescaling) sum(x []float32) []float32 {
	out := make([]float32, len(o.gain))
	for at := 0; at < len(x); at += len(out) {
		row := x[at : at+len(out)]
		o.apply(row)
		for i, v := range row {
			out[i] += v
		}
	}
	return out
}

// normal returns what to add to a vector and then to multiply it with, to get the mean 0 and the
// variance 1.
func normal(x []float32) (shift, by float32) {
	var sum, square [4]float32 // four that need not wait for each other
	for i := 0; i+4 <= len(x); i += 4 {
		for k, v := range (*[4]float32)(x[i:]) {
			sum[k], square[k] = sum[k]+v, square[k]+v*v
		}
	}
	n := float64(len(x))
	mean := float64(sum[0]+sum[1]+sum[2]+sum[3]) / n
	return float32(-mean), float32(1 / math.Sqrt(max(0, float64(square[0]+square[1]+square[2]+square[3])/n-mean*mean)+epsilon))
}
