package sentence

import (
	"bytes"
	"encoding/binary"
	"math/bits"
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

// row writes the vector of one row to out, which has the width of the table.
func (t *table) row(row int, out []float32) {
	code := bytesOf(t.blocks[uint32At(t.starts, row/blockRows):])
	if len(code) < mostCode { // the last blocks: a step reads ahead
		code = append(bytes.Clone(code), make([]byte, mostCode)...)
	}
	state := binary.BigEndian.Uint32(code)
	code = code[4:]
	for r := row / blockRows * blockRows; r <= row; r++ {
		d := t.decoder(t.classes[r])
		for i := range out {
			out[i], state, code = d.step(state, code)
		}
	}
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
