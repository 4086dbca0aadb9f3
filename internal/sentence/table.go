package sentence

const (
	blockRows = 8  // rows of the table that are coded together
	codeBits  = 12 // of a symbol's frequency
	codeLow   = 1 << 23
)

// table has a vector for each piece. A row is coded (rANS) with the values and frequencies
// of its class.
type table struct {
	symbols    int    // of a class
	values     vector // of the symbols
	cumulative string // frequency of all symbols before one
	classes    string // of each row
	starts     string // of each block
	blocks     string
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

// row writes the vector of a row to out.
func (t *table) row(row int, out []float32) {
	block := row / blockRows
	code := t.blocks[uint32At(t.starts, block):uint32At(t.starts, block+1)]
	var state uint32
	next := func() (b uint32) {
		if len(code) > 0 {
			b, code = uint32(code[0]), code[1:]
		}
		return b
	}
	for range 4 {
		state = state<<8 | next()
	}
	var cumulative [256]uint32
	var values [256]float32
	for at := block * blockRows; at <= row; at++ {
		class := int(t.classes[at])
		symbols := min(t.symbols, len(values)-1)
		for s := range symbols {
			cumulative[s] = uint32(uint16At(t.cumulative, class*(t.symbols+1)+s)) //nolint:gosec // 16 bits
			values[s] = t.values.at(class*t.symbols + s)
		}
		cumulative[symbols] = 1 << codeBits
		for i := range width {
			slot := state & (1<<codeBits - 1)
			s := 0
			for slot >= cumulative[s+1] {
				s++
			}
			state = (cumulative[s+1]-cumulative[s])*(state>>codeBits) + slot - cumulative[s]
			for state < codeLow {
				state = state<<8 | next()
				if len(code) == 0 {
					break
				}
			}
			if at == row {
				out[i] = values[s]
			}
		}
	}
}
