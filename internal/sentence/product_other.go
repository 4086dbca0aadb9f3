//go:build !amd64

package sentence

var floats = inGo

func hasKernel() bool { return false }

func (x *matrix) addTo(out []float32, outStep int, in fixed, inStep, n int) {
	x.addToGo(out, outStep, in, inStep, n)
}
