package sentence

import (
	"context"
	"math"
)

// maxPieces bounds the pieces of a text; the rest of a longer one does not count.
const maxPieces = 128

// margin is the number of zero rows before and after the rows of a text.
const margin = 2

// Encode returns the vector of a text, of length 1. It stops soon after the context ends.
func (m *Model) Encode(ctx context.Context, text string) ([]float32, error) {
	rows := m.pieces.split(text, maxPieces)
	n := len(rows)
	all := make([]float32, n*joined) // of each piece, its vector and its branches
	for i, row := range rows {
		m.table.row(row, all[i*joined:i*joined+width])
	}
	const in = len(branches) * narrow
	x := make([]float32, n*in)
	for i := range n {
		copy(x[i*in:], m.projectBias.floats(in))
	}
	m.project.addTo(x, in, all, joined, n)
	for i := range n {
		m.inner.apply(x[i*in : (i+1)*in])
	}
	for b := range branches {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		m.branch(b, all[width+b*narrow:], x[b*narrow:], n)
	}
	for i := range n {
		m.outer.apply(all[i*joined : (i+1)*joined])
	}
	return m.dense(all, n), nil
}

// branch writes the output of a branch to out, a row of joined values for each piece. The
// rows of in have the input of all branches.
func (m *Model) branch(b int, out, in []float32, n int) {
	const inRow = len(branches) * narrow
	// Adjacent rows are adjacent in memory, so a window of them is one slice.
	rows := make([]float32, (n+2*margin)*narrow)
	for i := range n {
		copy(rows[(margin+i)*narrow:(margin+i+1)*narrow], in[i*inRow:])
	}
	y := make([]float32, n*narrow)
	for _, l := range []*layer{&m.first[b], &m.second[b]} {
		for i := range n {
			copy(y[i*narrow:(i+1)*narrow], l.bias.floats(narrow))
		}
		l.addTo(y, narrow, rows[(margin-branches[b].before)*narrow:], narrow, n)
		for i, v := range y {
			rows[margin*narrow+i] += max(0, v)
		}
	}
	for i := range n {
		copy(out[i*joined:i*joined+narrow], rows[(margin+i)*narrow:])
	}
}

// dense returns the vector of a text from those of its pieces.
func (m *Model) dense(all []float32, n int) []float32 {
	sum := make([]float32, joined)
	for i := range n {
		for d, v := range all[i*joined : (i+1)*joined] {
			sum[d] += v
		}
	}
	mean := m.average.bias.floats(width)
	for d := range mean {
		mean[d] *= float32(n)
	}
	m.average.addTo(mean, width, sum, joined, 1)
	for d := range mean {
		mean[d] /= float32(math.Sqrt(float64(n)))
	}
	y0, y1, y2, z := make([]float32, hidden), make([]float32, hidden), make([]float32, width), make([]float32, Dimensions)
	m.d0.addTo(y0, hidden, mean, width, 1)
	rectify(y0)
	m.p1.addTo(y1, hidden, mean, width, 1)
	m.d1.addTo(y1, hidden, y0, hidden, 1)
	rectify(y1)
	m.d2.addTo(y2, width, y1, hidden, 1)
	rectify(y2)
	m.p3.addTo(z, Dimensions, y1, hidden, 1)
	m.d3.addTo(z, Dimensions, y2, width, 1)
	length := 0.0
	for d, v := range z {
		t := math.Tanh(float64(v))
		z[d] = float32(t)
		length += t * t
	}
	by := float32(1 / math.Sqrt(max(length, epsilon)))
	for d := range z {
		z[d] *= by
	}
	return z
}

func rectify(x []float32) {
	for i, v := range x {
		x[i] = max(0, v)
	}
}

func (v vector) floats(n int) []float32 {
	out := make([]float32, n)
	for i := range out {
		out[i] = v.at(i)
	}
	return out
}

func (o *rescaling) apply(x []float32) {
	var sum, squares float64
	for _, v := range x {
		sum += float64(v)
	}
	mean := sum / float64(len(x))
	for _, v := range x {
		squares += (float64(v) - mean) * (float64(v) - mean)
	}
	by := 1 / math.Sqrt(squares/float64(len(x))+epsilon)
	for i, v := range x {
		x[i] = float32((float64(v)-mean)*by)*o.gain.at(i) + o.bias.at(i)
	}
}

// addToGo is addTo for every processor.
func (x *matrix) addToGo(out []float32, outStep int, in []float32, inStep, n int) {
	w := make([]float32, x.in) // of one output; unpacked once for all rows
	for o := range x.out {
		x.unpack(w, o)
		scale := x.scale.at(o)
		r := 0
		for ; r+4 <= n; r += 4 {
			a, b, c, d := dot4Go(w, in[r*inStep:], in[(r+1)*inStep:], in[(r+2)*inStep:], in[(r+3)*inStep:])
			out[r*outStep+o] += scale * a
			out[(r+1)*outStep+o] += scale * b
			out[(r+2)*outStep+o] += scale * c
			out[(r+3)*outStep+o] += scale * d
		}
		for ; r < n; r++ {
			out[r*outStep+o] += scale * dot(w, in[r*inStep:])
		}
	}
}

// dot4Go returns the products of w and four rows. Four sums need not wait for each other.
func dot4Go(w, a, b, c, d []float32) (p, q, r, s float32) {
	a, b, c, d = a[:len(w)], b[:len(w)], c[:len(w)], d[:len(w)]
	for i, v := range w {
		p += v * a[i]
		q += v * b[i]
		r += v * c[i]
		s += v * d[i]
	}
	return p, q, r, s
}

// unpack writes the weights of an output to w, without their scale.
func (x *matrix) unpack(w []float32, output int) {
	row := x.weights[output*x.in : (output+1)*x.in]
	w = w[:len(row)]
	for i, b := range row {
		w[i] = floatOf[uint8(b)] //nolint:gosec // its bits
	}
}

// floatOf has the value of each signed byte. Looking it up is faster than converting it.
var floatOf = func() (of [256]float32) {
	for i := range of {
		of[i] = float32(int8(i)) //nolint:gosec // its bits
	}
	return of
}()

// dot returns the product of w and a row.
func dot(w, a []float32) float32 {
	a = a[:len(w)]
	var p, q, r, s float32
	i := 0
	for ; i+4 <= len(w); i += 4 {
		p += w[i] * a[i]
		q += w[i+1] * a[i+1]
		r += w[i+2] * a[i+2]
		s += w[i+3] * a[i+3]
	}
	for ; i < len(w); i++ {
		p += w[i] * a[i]
	}
	return p + q + r + s
}
