package sentence

import "golang.org/x/sys/cpu"

var kernels = []usableKernel{
	{kernel{64, 4, true, rows4VNNI, row1VNNI}, cpu.X86.HasAVX512BW && cpu.X86.HasAVX512VL && cpu.X86.HasAVX512VNNI},
	{kernel{16, 2, false, rows2AVX2, row1AVX2}, cpu.X86.HasAVX2},
}

//go:noescape
func rows4VNNI(p *product)

//go:noescape
func row1VNNI(p *product)

//go:noescape
func rows2AVX2(p *product)

//go:noescape
func row1AVX2(p *product)
