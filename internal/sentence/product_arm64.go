package sentence

var floats = inGo

// Each processor of this kind has these instructions.
var kernels = []usableKernel{{kernel{16, 2, rows2NEON, row1NEON}, true}}

//go:noescape
func rows2NEON(p *product)

//go:noescape
func row1NEON(p *product)
