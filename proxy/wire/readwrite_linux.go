//go:build !race

package wire

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

func rawRead(fd int, b []byte) (int, error) {
	n, _, e := syscall.RawSyscall(unix.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b))) // #nosec G103 G115 -- arguments of read(2)
	return result(n, e)
}

func rawWrite(fd uintptr, b []byte) (int, error) {
	n, _, e := syscall.RawSyscall(unix.SYS_WRITE, fd, uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b))) // #nosec G103 -- arguments of write(2)
	return result(n, e)
}
