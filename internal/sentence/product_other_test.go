//go:build !amd64

package sentence

import "testing"

func onAnyProcessor(*testing.T) {}

func products(x *matrix) map[string]func(out []float32, outStep int, in fixed, inStep, n int) {
	return map[string]func(out []float32, outStep int, in fixed, inStep, n int){"the default": x.addTo}
}
