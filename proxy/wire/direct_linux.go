package wire

import (
	"io"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// direct reads and writes a TCP connection as net.TCPConn does, with its deadlines and
// waits, but with system calls that bypass the scheduler's bookkeeping: sockets never
// block, and a thread that only copies to a socket need not be replaced. At most one
// goroutine reads and one writes at a time.
type direct struct {
	raw syscall.RawConn

	in, out       []byte // arguments of the system calls
	nIn, nOut     int    // their results
	errIn, errOut error

	read, write func(fd uintptr) bool // closures, allocated once
}

// quick returns what reads and writes a connection with the least work: direct, or the
// connection itself if it is not plain TCP.
func quick(c net.Conn) io.ReadWriter {
	t, ok := c.(*net.TCPConn)
	if !ok {
		return c
	}
	raw, err := t.SyscallConn()
	if err != nil {
		return c
	}
	d := &direct{raw: raw}
	d.read = func(fd uintptr) bool {
		d.nIn, d.errIn = rawRead(int(fd), d.in) // #nosec G115 -- a descriptor
		return d.errIn != unix.EAGAIN           //nolint:errorlint // a bare errno
	}
	d.write = func(fd uintptr) bool {
		d.nOut, d.errOut = rawWrite(fd, d.out)
		return d.errOut != unix.EAGAIN //nolint:errorlint // a bare errno
	}
	return d
}

// Read implements io.Reader.
func (d *direct) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for {
		d.in = p
		err := d.raw.Read(d.read)
		d.in = nil
		switch {
		case err != nil:
			return 0, err
		case d.errIn == unix.EINTR: //nolint:errorlint // a bare errno
		case d.errIn != nil:
			return 0, os.NewSyscallError("read", d.errIn)
		case d.nIn == 0:
			return 0, io.EOF
		default:
			return d.nIn, nil
		}
	}
}

// Write implements io.Writer.
func (d *direct) Write(p []byte) (n int, err error) {
	for n < len(p) {
		d.out = p[n:]
		err := d.raw.Write(d.write)
		d.out = nil
		switch {
		case err != nil:
			return n, err
		case d.errOut == unix.EINTR: //nolint:errorlint // a bare errno
		case d.errOut != nil:
			return n, os.NewSyscallError("write", d.errOut)
		default:
			n += d.nOut
		}
	}
	return n, nil
}
