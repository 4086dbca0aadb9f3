package sentence

import (
	_ "embed"
	"encoding/binary"
	"errors"
	"math"
	"unsafe"
)

const (
	magic = "usem3\x00\x00\x01"

	width   = 512  // dimensions of a piece
	narrow  = 256  // dimensions of a branch
	joined  = 1280 // a piece and its three branches
	hidden  = 320
	epsilon = 1e-12
)

// file is not copied to the heap: the operating system reads a page of it when it is used.
//
//go:embed model.bin
var file string

// branch looks at order adjacent pieces, of which before precede the current one.
type branch struct{ order, before int }

var branches = [...]branch{{2, 0}, {3, 1}, {5, 2}}

// universal is the Universal Sentence Encoder, for 16 languages. It refers to the bytes of its file,
// and copies no weights. It is safe
// for concurrent use.
type universal struct {
	pieces pieces
	table  table

	project       matrix // of a piece to the input of all branches
	projectBias   []float32
	inner         rescaling
	first, second [len(branches)]layer
	outer         rescaling
	average       layer
	d0, d1, p1    matrix
	d2, p3, d3    matrix
}

type layer struct {
	matrix
	bias []float32
}

// rescaling scales a vector to the mean 0 and the variance 1, and then each dimension.
type rescaling struct{ gain, bias []float32 }

// matrix has the weights of each output in a row, with a scale.
type matrix struct {
	in, out int
	step    int // from the weights of an output to those of the next
	scale   []float32
	weights []int8
}

func uint32At(s string, i int) uint32 { return binary.LittleEndian.Uint32(bytesOf(s[4*i : 4*i+4])) }
func uint16At(s string, i int) int    { return int(s[2*i]) | int(s[2*i+1])<<8 }

// bytesOf returns the bytes of s, which are read only.
func bytesOf(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }

var errFile = errors.New("model.bin is not of this version; make it again with convert.py")

// reader cuts a file into its parts.
type reader struct {
	rest string
	bad  bool
}

func (r *reader) take(n int) string {
	if n < 0 || n > len(r.rest) {
		r.bad, n = true, 0
	}
	s := r.rest[:n]
	r.rest = r.rest[n:]
	return s
}

// vector copies values: other than weights, the layers have few.
func (r *reader) vector(n int) []float32 {
	s := r.take(4 * n)
	v := make([]float32, len(s)/4)
	for i := range v {
		v[i] = math.Float32frombits(uint32At(s, i))
	}
	return v
}

func (r *reader) matrix(in, out int) matrix {
	return matrix{in: in, out: out, step: in, scale: r.vector(out)}
}

func (r *reader) rescaling(n int) rescaling { return rescaling{r.vector(n), r.vector(n)} }

// weights sets the weights of a matrix, which stay in the file.
func (r *reader) weights(x *matrix) {
	s := r.take(x.in * x.out)
	if r.bad {
		return
	}
	x.weights = unsafe.Slice((*int8)(unsafe.Pointer(unsafe.StringData(s))), len(s))
}

func loadUniversal(file string) (*universal, error) {
	r := &reader{rest: file}
	if r.take(len(magic)) != magic {
		return nil, errFile
	}
	head := r.take(5 * 4)
	if r.bad {
		return nil, errFile
	}
	var sizes [5]int
	for i := range sizes {
		sizes[i] = int(uint32At(head, i))
	}
	m := &universal{}
	m.readLayers(r)
	m.pieces.read(r, sizes[0], sizes[1])
	m.table.read(r, sizes[0]+firstPiece, sizes[2], sizes[3])
	if r.bad || len(r.rest) != 0 {
		return nil, errFile
	}
	return m, nil
}

func (m *universal) readLayers(r *reader) {
	const all = len(branches) * narrow
	m.project = r.matrix(width, all)
	for i, b := range branches {
		m.first[i].matrix, m.second[i].matrix = r.matrix(b.order*narrow, narrow), r.matrix(b.order*narrow, narrow)
	}
	m.average.matrix = r.matrix(joined, width)
	m.d0, m.d1, m.p1 = r.matrix(width, hidden), r.matrix(hidden, hidden), r.matrix(width, hidden)
	m.d2, m.p3, m.d3 = r.matrix(hidden, width), r.matrix(hidden, width), r.matrix(width, width)

	m.projectBias = r.vector(all)
	m.inner = r.rescaling(all)
	for i := range branches {
		m.first[i].bias, m.second[i].bias = r.vector(narrow), r.vector(narrow)
	}
	m.outer = r.rescaling(joined)
	m.average.bias = r.vector(width)

	r.weights(&m.project)
	for i := range branches {
		r.weights(&m.first[i].matrix)
		r.weights(&m.second[i].matrix)
	}
	for _, x := range []*matrix{&m.average.matrix, &m.d0, &m.d1, &m.p1, &m.d2, &m.p3, &m.d3} {
		r.weights(x)
	}
}
