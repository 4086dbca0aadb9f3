package sentence

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math/bits"
	"slices"
	"sync/atomic"
)

const (
	blockRows = 8  // rows of the table that are coded together
	codeBits  = 12 // of a symbol's frequency
	codeLow   = 1 << 23
	mostCode  = 4 + 3*blockRows*width // bytes that decoding reads of a block
)

// table has a vector for each piece. A row is coded (rANS) with the values and frequencies
// of its class.
type table struct {
	symbols    int       // of a class
	values     []float32 // of the symbols
	cumulative string    // frequency of all symbols before one
	classes    string    // of each row
	starts     string    // of each block
	blocks     string
	decoders   [256]atomic.Pointer[decoder] // of the classes
}

func (t *table) read(r *reader, rows, classes, symbols int) {
	t.symbols = symbols
	t.values, t.cumulative = r.vector(classes*symbols), r.take(classes*(symbols+1)*2)
	blocks := (rows + blockRows - 1) / blockRows
	t.classes, t.starts = r.take(blocks*blockRows), r.take((blocks+1)*4)
	if r.bad || symbols == 0 {
		r.bad = true
		return
	}
	t.blocks = r.take(int(uint32At(t.starts, blocks)))
}

// decoder decodes rows of one class.
type decoder struct {
	symbol [1 << codeBits]uint8 // of each state's low bits
	// The frequency of each symbol in the upper half, that of all before it in the lower one.
	frequency [256]uint32
	values    [256]float32
}

// decoder returns the decoder of a class, which is made when it is first used.
func (t *table) decoder(class byte) *decoder {
	if d := t.decoders[class].Load(); d != nil {
		return d
	}
	d := &decoder{}
	first := int(class) * (t.symbols + 1)
	for s := range min(t.symbols, len(d.values)) {
		from, to := uint16At(t.cumulative, first+s), uint16At(t.cumulative, first+s+1)
		d.frequency[s], d.values[s] = uint32(to-from)<<16|uint32(from), t.values[int(class)*t.symbols+s] //nolint:gosec // of 16 bits
		for i := from; i < min(to, len(d.symbol)); i++ {
			d.symbol[i] = uint8(s) //nolint:gosec // below 256
		}
	}
	t.decoders[class].Store(d)
	return d
}

// stream is a block that is being decoded.
type stream struct {
	next  int // row
	state uint32
	code  []byte
}

// stream returns the block of a row.
func (t *table) stream(row int) stream {
	block := row / blockRows
	code := bytesOf(t.blocks[uint32At(t.starts, block):])
	if len(code) < mostCode { // the last blocks: others may be decoded for longer, and a step reads ahead
		code = append(bytes.Clone(code), make([]byte, mostCode)...)
	}
	s := stream{next: block * blockRows, code: code[4:], state: binary.BigEndian.Uint32(code)}
	return s
}

// rows writes the vectors of rows to out, each step values after the previous one. A symbol's
// code begins where the one before it ends, so that four rows at once are faster.
func (t *table) rows(rows []int, out []float32, step int) {
	var unused [width]float32
	order := make([]int, len(rows)) // those late in their blocks first
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(rows[b]%blockRows, rows[a]%blockRows) })
	for len(order) > 0 {
		var s [4]stream
		for i := range s {
			s[i] = t.stream(rows[order[min(i, len(order)-1)]])
		}
		for at := range rows[order[0]]%blockRows + 1 {
			var to [4]*[width]float32
			for i := range to {
				if to[i] = &unused; i < len(order) && rows[order[i]]%blockRows == at {
					to[i] = (*[width]float32)(out[order[i]*step:])
				}
			}
			t.next(&s, &to)
		}
		order = order[min(len(s), len(order)):]
	}
}

// row writes the vector of one row to out, which has the width of the table.
func (t *table) row(row int, out []float32) {
	for s := t.stream(row); s.next <= row; s.next++ {
		d := t.decoder(t.classes[s.next])
		for i := range out {
			out[i], s.state, s.code = d.step(s.state, s.code)
		}
	}
}

// next decodes the next row of each stream.
func (t *table) next(s *[4]stream, to *[4]*[width]float32) {
	a, b, c, d := s[0].code, s[1].code, s[2].code, s[3].code
	p, q, r, u := s[0].state, s[1].state, s[2].state, s[3].state
	da, db, dc, dd := t.decoder(t.classes[s[0].next]), t.decoder(t.classes[s[1].next]), t.decoder(t.classes[s[2].next]), t.decoder(t.classes[s[3].next])
	oa, ob, oc, od := to[0], to[1], to[2], to[3]
	for i := range width {
		oa[i], p, a = da.step(p, a)
		ob[i], q, b = db.step(q, b)
		oc[i], r, c = dc.step(r, c)
		od[i], u, d = dd.step(u, d)
	}
	for i := range s {
		s[i].next++
	}
	s[0].code, s[1].code, s[2].code, s[3].code = a, b, c, d
	s[0].state, s[1].state, s[2].state, s[3].state = p, q, r, u
}

// step decodes a symbol.
func (d *decoder) step(state uint32, code []byte) (float32, uint32, []byte) {
	slot := state & (1<<codeBits - 1)
	symbol := d.symbol[slot]
	f := d.frequency[symbol]
	state = f>>16*(state>>codeBits) + slot - f&0xffff
	// A state below codeLow takes bytes of the code: none, one or two.
	n := (31 - bits.Len32(state)) &^ 7
	state = state<<(n&31) | uint32(binary.BigEndian.Uint16(code))>>((16-n)&31)
	return d.values[symbol], state, code[n>>3:]
}
