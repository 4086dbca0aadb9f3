package wire

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// These calls never wait, so the scheduler need not know of them: that would cost a
// sixth of an event in a loop, most of it in watching that they come back.

func rawRead(fd int, b []byte) (int, error) {
	n, _, e := syscall.RawSyscall(unix.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b))) // #nosec G103 G115 -- what read(2) takes
	return result(n, e)
}

func rawWrite(fd uintptr, b []byte) (int, error) {
	n, _, e := syscall.RawSyscall(unix.SYS_WRITE, fd, uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b))) // #nosec G103 -- what write(2) takes
	return result(n, e)
}

func rawEpoll(fd uintptr, events []unix.EpollEvent) (int, error) {
	n, _, e := syscall.RawSyscall6(unix.SYS_EPOLL_PWAIT, fd, uintptr(unsafe.Pointer(unsafe.SliceData(events))), uintptr(len(events)), 0, 0, 0) // #nosec G103 -- what epoll_pwait(2) takes
	return result(n, e)
}

// peek looks at what has arrived: 0 bytes without an error are the end.
func (s socket) peek() (int, error) {
	var b [1]byte
	n, _, e := syscall.RawSyscall6(unix.SYS_RECVFROM, uintptr(s), uintptr(unsafe.Pointer(&b)), 1, unix.MSG_PEEK|unix.MSG_DONTWAIT, 0, 0) // #nosec G103 G115 -- what recvfrom(2) takes
	return result(n, e)
}

func result(n uintptr, e syscall.Errno) (int, error) {
	if e != 0 {
		return 0, e
	}
	return int(n), nil // #nosec G115 -- at most the length of what was given
}
