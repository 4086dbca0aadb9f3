package sentence

import "golang.org/x/sys/cpu"

var floats = inGo

var kernels = []usableKernel{
	{kernel{16, 4, true, rows4SDOT, row1SDOT}, cpu.ARM64.HasASIMDDP},
	{kernel{16, 2, false, rows2NEON, row1NEON}, true}, // each processor of this kind has these instructions
}

//go:noescape
func rows4SDOT(p *product)

//go:noescape
func row1SDOT(p *product)

//go:noescape
func rows2NEON(p *product)

//go:noescape
func row1NEON(p *product)
