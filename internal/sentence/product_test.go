package sentence

import (
	"testing"
	"unsafe"
)

// onAnyProcessor turns the wide instructions off during a test.
func onAnyProcessor(t *testing.T) {
	before, beforeFloats := usable, floats
	t.Cleanup(func() { usable, floats = before, beforeFloats })
	usable, floats = kernels{long: &kernel{1, rowInGo, rowInGo}}, inGo
}

// rowInGo multiplies as the kernels do.
func rowInGo(p *product) {
	in, scales, out := unsafe.Slice((*int16)(p.in), p.inputs), unsafe.Slice(p.scale, p.outputs), unsafe.Slice(p.out, p.outputs)
	weights := unsafe.Slice(p.weights, (p.outputs-1)*p.step+p.inputs)
	for o := range out {
		sum := int32(0)
		for i, v := range in {
			sum += int32(v) * int32(weights[o*p.step+i])
		}
		out[o] += scales[o] * *p.units * float32(sum)
	}
}
