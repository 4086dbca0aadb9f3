package sentence

import (
	"fmt"
	"testing"
)

// onAnyProcessor turns the wide instructions off during a test.
func onAnyProcessor(t *testing.T) {
	before, beforeFloats := kernels, floats
	t.Cleanup(func() { kernels, floats = before, beforeFloats })
	kernels, floats = nil, inGo
}

// products returns the ways of this processor to multiply longer values, or also bytes, with a matrix.
func products(x *matrix, bytes bool) map[string]func(out []float32, outStep int, in fixed, inStep, n int) {
	all := map[string]func(out []float32, outStep int, in fixed, inStep, n int){"the default": x.addTo}
	for i := range kernels {
		if k := &kernels[i]; k.usable && (bytes || !k.bytes) {
			all[fmt.Sprint("kernel ", i)] = func(out []float32, outStep int, in fixed, inStep, n int) {
				k.addTo(x, out, outStep, in, inStep, n)
			}
		}
	}
	return all
}
