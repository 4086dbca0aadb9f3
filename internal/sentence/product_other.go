//go:build !amd64

package sentence

func (x *matrix) addTo(out []float32, outStep int, in []float32, inStep, n int) {
	x.addToGo(out, outStep, in, inStep, n)
}
