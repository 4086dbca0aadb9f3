package sentence

import "unsafe"

// kernel multiplies with instructions for many values at once. The numbers of inputs are multiples of 64, and
// those of outputs of four.
type kernel struct {
	rows int // at once
	many func(p *product)
	one  func(p *product)
}

// kernels are those of this processor. It has none for bytes if it multiplies these no faster.
type kernels struct{ long, bytes *kernel }

// product is the input of a kernel, which adds the products of outputs rows of weights with
// rows of inputs to rows of out. Steps are distances between rows, in values; step is the
// distance between rows of weights.
type product struct {
	out     *float32
	outStep int
	weights *int8
	step    int
	scale   *float32
	in      unsafe.Pointer // int16, or int8 for bytes
	inStep  int
	inputs  int
	outputs int
	units   *float32 // of each row
	sums    *int32   // of the inputs of each row, for bytes
}

// addTo adds the product of the matrix and n rows of in to the rows of out. A row begins
// inStep or outStep values after the previous one.
func (x *matrix) addTo(out []float32, outStep int, in fixed, inStep, n int) {
	k, bytes := usable.long, in.bytes != nil && usable.bytes != nil
	if bytes {
		k = usable.bytes
	}
	// A kernel checks no bounds.
	_, _, _, _, _ = out[(n-1)*outStep+x.out-1], in.values[(n-1)*inStep+x.in-1], in.units[n-1], x.weights[(x.out-1)*x.step+x.in-1], x.scale[x.out-1]
	p := product{weights: &x.weights[0], step: x.step, scale: &x.scale[0], outStep: outStep, inStep: inStep, inputs: x.in, outputs: x.out}
	for r := 0; r < n; {
		p.out, p.in, p.units = &out[r*outStep], unsafe.Pointer(&in.values[r*inStep]), &in.units[r]
		if bytes {
			p.in, p.sums = unsafe.Pointer(&in.bytes[r*inStep]), &in.sums[r]
		}
		if r+k.rows <= n {
			k.many(&p)
			r += k.rows
		} else {
			k.one(&p)
			r++
		}
	}
}
