package sentence

import (
	"slices"
	"unsafe"
)

// kernel multiplies with instructions for many values at once.
type kernel struct {
	step  int  // of inputs; a multiple of four outputs is needed, too
	rows  int  // at once
	bytes bool // the inputs are bytes
	many  func(p *product)
	one   func(p *product)
}

type usableKernel struct {
	kernel
	usable bool
}

// hasKernel reports whether this processor multiplies many values at once.
func hasKernel() bool {
	return slices.ContainsFunc(kernels, func(k usableKernel) bool { return k.usable })
}

// multipliesBytes reports whether this processor multiplies bytes faster than longer values.
func multipliesBytes() bool {
	return slices.ContainsFunc(kernels, func(k usableKernel) bool { return k.usable && k.bytes })
}

// product is the input of a kernel, which adds the products of outputs rows of weights with
// rows of inputs to rows of out. Steps are distances between rows, in values; step is the
// distance between rows of weights.
type product struct {
	out     *float32
	outStep int
	weights *int8
	step    int
	scale   *float32
	in      unsafe.Pointer
	inStep  int
	inputs  int
	outputs int
	units   *float32 // of each row
	sums    *int32   // of the inputs of each row, for bytes
}

// addTo adds the product of the matrix and n rows of in to the rows of out. A row begins
// inStep or outStep values after the previous one.
func (x *matrix) addTo(out []float32, outStep int, in fixed, inStep, n int) {
	for i := range kernels {
		if k := &kernels[i]; k.usable && (!k.bytes || in.bytes != nil) && x.in%k.step == 0 && x.out%4 == 0 {
			k.addTo(x, out, outStep, in, inStep, n)
			return
		}
	}
	x.addToGo(out, outStep, in, inStep, n)
}

func (k *kernel) addTo(x *matrix, out []float32, outStep int, in fixed, inStep, n int) {
	// A kernel checks no bounds.
	_, _, _, _ = out[(n-1)*outStep+x.out-1], in.units[n-1], x.weights[(x.out-1)*x.step+x.in-1], x.scale[x.out-1]
	p := product{weights: &x.weights[0], step: x.step, scale: &x.scale[0], outStep: outStep, inStep: inStep, inputs: x.in, outputs: x.out}
	for r := 0; r < n; {
		p.out, p.units = &out[r*outStep], &in.units[r]
		if last := (n-1)*inStep + x.in - 1; k.bytes {
			p.in, p.sums, _ = unsafe.Pointer(&in.bytes[r*inStep]), &in.sums[r], in.bytes[last]
		} else {
			p.in, _ = unsafe.Pointer(&in.values[r*inStep]), in.values[last]
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
