package sentence

import "golang.org/x/sys/cpu"

var hasFMA = cpu.X86.HasAVX2 && cpu.X86.HasFMA

// addTo adds the product of the matrix and n rows of in to the rows of out. A row begins
// inStep or outStep values after the previous one.
func (x *matrix) addTo(out []float32, outStep int, in []float32, inStep, n int) {
	if !hasFMA || x.in%16 != 0 {
		x.addToGo(out, outStep, in, inStep, n)
		return
	}
	_, _ = in[(n-1)*inStep+x.in-1], x.weights[x.out*x.in-1] // dot4 checks no bounds
	var sums [4]float32
	for r := 0; r < n; r += 4 { // the rows stay in the cache of the processor
		row := func(i int) *float32 { return &in[min(r+i, n-1)*inStep] }
		a, b, c, d := row(0), row(1), row(2), row(3)
		for o := range x.out {
			dot4(&sums, &x.weights[o*x.in], a, b, c, d, x.in)
			scale := x.scale.at(o)
			for i := range min(4, n-r) {
				out[(r+i)*outStep+o] += scale * sums[i]
			}
		}
	}
}

// dot4 sets sums to the products of w and four rows of n values, a multiple of 16. It needs
// AVX2 and FMA, and multiplies eight values at a time.
//
//go:noescape
func dot4(sums *[4]float32, w *int8, a, b, c, d *float32, n int)
