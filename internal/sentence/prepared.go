package sentence

import (
	"slices"
	"sync/atomic"
)

// The values of a piece that are the same in each text: its vector, the input of its branches,
// and its terms of their first layers, for each place in a layer's window.
const (
	atInputs = width
	atTerms  = atInputs + len(branches)*narrow
	allOfOne = atTerms + (2+3+5)*narrow

	keptPieces = 512 // of 8 KB each
	together   = 16  // pieces that are prepared at once
)

// prepared are the values of a piece. They do not change.
type prepared struct {
	row                   int
	vector, inputs, terms fixed
}

// keptPrepared are pieces of earlier texts, by their rows: texts repeat pieces.
type keptPrepared [keptPieces]atomic.Pointer[prepared]

// prepare returns the values of the pieces of a text.
func (m *universal) prepare(rows []int, s *scratch) []*prepared {
	out := make([]*prepared, len(rows))
	var missing []int
	at := make(map[int]int) // of missing rows
	for i, row := range rows {
		if p := m.kept[row%keptPieces].Load(); p != nil && p.row == row {
			out[i] = p
		} else if _, ok := at[row]; !ok {
			at[row] = len(missing)
			missing = append(missing, row)
		}
	}
	fresh := make([]*prepared, 0, len(missing))
	for some := range slices.Chunk(missing, together) {
		fresh = append(fresh, m.prepareSome(some, s)...)
	}
	for _, p := range fresh {
		m.kept[p.row%keptPieces].Store(p)
	}
	for i, row := range rows {
		if out[i] == nil {
			out[i] = fresh[at[row]]
		}
	}
	return out
}

// prepareSome computes the values of at most together pieces.
func (m *universal) prepareSome(rows []int, s *scratch) []*prepared {
	n := len(rows)
	s.fresh = sized(s.fresh, together*allOfOne)
	clear(s.fresh)
	m.table.rows(rows, s.fresh, allOfOne)
	inputs := s.fresh[atInputs:]
	for i := range n {
		copy(inputs[i*allOfOne:], m.projectBias)
	}
	m.project.addTo(inputs, allOfOne, s.fixed(s.fresh, allOfOne, width, n, width), width, n)
	for i := range n {
		m.inner.apply(inputs[i*allOfOne : i*allOfOne+len(branches)*narrow])
	}
	whole := s.fixed(inputs, allOfOne, len(branches)*narrow, n, narrow)
	at := atTerms
	for b := range branches {
		of := fixed{whole.values[b*narrow:], whole.unit}
		for j := range branches[b].order {
			part := m.first[b].part(j*narrow, narrow)
			part.addTo(s.fresh[at:], allOfOne, of, len(branches)*narrow, n)
			at += narrow
		}
	}
	out := make([]*prepared, n)
	for i, row := range rows {
		values := s.fresh[i*allOfOne : (i+1)*allOfOne]
		whole := make([]int16, allOfOne)
		out[i] = &prepared{
			row: row, vector: fixedIn(whole[:atInputs], values[:atInputs]),
			inputs: fixedIn(whole[atInputs:atTerms], values[atInputs:atTerms]),
			terms:  fixedIn(whole[atTerms:], values[atTerms:]),
		}
	}
	return out
}

// part returns the matrix of n inputs from the first one on.
func (x *matrix) part(first, n int) matrix {
	return matrix{in: n, out: x.out, step: x.step, scale: x.scale, weights: x.weights[first:]}
}
