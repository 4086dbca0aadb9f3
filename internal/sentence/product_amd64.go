package sentence

import "golang.org/x/sys/cpu"

var usable = func() (k kernels) {
	if cpu.X86.HasAVX2 {
		k.long = &kernel{2, rows2AVX2, row1AVX2}
	}
	if k.long != nil && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512VL && cpu.X86.HasAVX512VNNI {
		k.bytes = &kernel{4, rows4VNNI, row1VNNI}
	}
	return k
}()

//go:noescape
func rows4VNNI(p *product)

//go:noescape
func row1VNNI(p *product)

//go:noescape
func rows2AVX2(p *product)

//go:noescape
func row1AVX2(p *product)
