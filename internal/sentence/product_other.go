//go:build !amd64 && !arm64

package sentence

var floats = inGo

var usable kernels
