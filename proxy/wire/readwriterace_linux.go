//go:build race

package wire

import "syscall"

// The race detector knows the order of the system calls of package syscall only.

func rawRead(fd int, b []byte) (int, error) { return syscall.Read(fd, b) }

func rawWrite(fd uintptr, b []byte) (int, error) { return syscall.Write(int(fd), b) } // #nosec G115 -- a descriptor
