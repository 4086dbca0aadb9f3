package sentence

import "math"

// operations are the vector operations. Their slices have equal lengths, positive multiples of 16; those of
// dot, and the output of addProducts, of 32.
type operations struct {
	addProducts func(out, rows []float32, step int, by []float32) // adds the rows, each times one of by; step is from row to row
	largest     func(x []float32) float32                         // size
	round       func(out []int16, in []float32, by float32)       // in times by, as whole numbers
	dot         func(a, b []int8) int32                           // sum of the products
}

// inGo are the operations of every processor.
var inGo = operations{
	addProducts: func(out, rows []float32, step int, by []float32) {
		for k, b := range by {
			row := rows[k*step:][:len(out)]
			for i, v := range row {
				out[i] += float32(b * v)
			}
		}
	},
	largest: func(x []float32) float32 {
		var most uint32
		for _, v := range x {
			most = max(most, math.Float32bits(v)&^(1<<31))
		}
		return math.Float32frombits(most)
	},
	round: func(out []int16, in []float32, by float32) {
		in = in[:len(out)]
		for i, v := range in {
			out[i] = int16(math.Float32bits(float32(v*by) + rounder)) //nolint:gosec // its low bits are the whole number
		}
	},
	dot: dotGo,
}

func dotGo(a, b []int8) (sum int32) {
	b = b[:len(a)]
	for i, x := range a {
		sum += int32(x) * int32(b[i])
	}
	return sum
}

// Dot returns the dot product of two vectors of the same length, which may have been shortened to int8
// by any factor.
func Dot(a, b []int8) (sum int32) {
	n := len(a) &^ 31
	if n > 0 {
		sum = floats.dot(a[:n], b[:n])
	}
	return sum + dotGo(a[n:], b[n:])
}

// rounder added to a small number leaves its nearest whole number in the low bits.
const rounder = 3 << 22
