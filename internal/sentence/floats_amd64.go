package sentence

import "golang.org/x/sys/cpu"

var floats = func() operations {
	if !cpu.X86.HasAVX2 {
		return inGo
	}
	return operations{addProducts: addProductsAVX2, largest: largestAVX2, round: roundAVX2, dot: dotAVX2}
}()

func addProductsAVX2(out, rows []float32, step int, by []float32)
func dotAVX2(a, b []int8) int32
func largestAVX2(x []float32) float32
func roundAVX2(out []int16, in []float32, by float32)
