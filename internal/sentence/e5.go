package sentence

import (
	_ "embed"
	"errors"
)

const (
	e5Magic = "e5s\x00\x00\x00\x00\x01"

	e5Width  = 384
	e5Heads  = 12
	e5Inner  = 1536
	e5Places = 128 // pieces of a text that have a place
)

// e5File is not copied to the heap, like file.
//
//go:embed e5.bin
var e5File string

// e5 is multilingual-e5-small, an encoder for a hundred languages. It is safe for concurrent use.
type e5 struct {
	pieces pieces
	table  table
	first  rescaling
	places []float32 // vectors of the places
	layers []e5Layer
}

// e5Layer is a layer of attention, and two that follow.
type e5Layer struct {
	asked, out, wide, narrow layer // asked has the queries, the keys and the values
	attended, done           rescaling
}

var errE5 = errors.New("e5.bin is not of this version; make it again with convert_e5.py")

func loadE5(file string) (*e5, error) {
	r := &reader{rest: file}
	if r.take(len(e5Magic)) != e5Magic {
		return nil, errE5
	}
	head := r.take(4 * 4)
	if r.bad || uint32At(head, 0) > e5Places { // each layer takes memory before its bytes are read
		return nil, errE5
	}
	m := &e5{layers: make([]e5Layer, uint32At(head, 0))}
	m.readLayers(r)
	count := int(uint32At(head, 1))
	m.pieces.read(r, count, int(uint32At(head, 2)))
	m.table.read(r, firstPiece+count, 1, int(uint32At(head, 3)))
	if r.bad || len(r.rest) != 0 {
		return nil, errE5
	}
	return m, nil
}

func (m *e5) readLayers(r *reader) {
	for n := range m.layers {
		l := &m.layers[n]
		for _, x := range []struct {
			*layer
			in, out int
		}{{&l.asked, e5Width, 3 * e5Width}, {&l.out, e5Width, e5Width}, {&l.wide, e5Width, e5Inner}, {&l.narrow, e5Inner, e5Width}} {
			x.matrix, x.bias = r.matrix(x.in, x.out), r.vector(x.out)
		}
		l.attended, l.done = r.rescaling(e5Width), r.rescaling(e5Width)
	}
	m.first, m.places = r.rescaling(e5Width), r.vector(e5Places*e5Width)
	for n := range m.layers {
		l := &m.layers[n]
		for _, x := range []*layer{&l.asked, &l.out, &l.wide, &l.narrow} {
			r.weights(&x.matrix)
		}
	}
}
