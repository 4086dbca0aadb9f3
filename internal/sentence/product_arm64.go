package sentence

import "golang.org/x/sys/cpu"

var floats = inGo

var usable = func() kernels {
	k := kernels{long: &kernel{2, rows2NEON, row1NEON}} // each processor of this kind has these instructions
	if cpu.ARM64.HasASIMDDP {
		k.bytes = &kernel{4, rows4SDOT, row1SDOT}
	}
	return k
}()

//go:noescape
func rows4SDOT(p *product)

//go:noescape
func row1SDOT(p *product)

//go:noescape
func rows2NEON(p *product)

//go:noescape
func row1NEON(p *product)
