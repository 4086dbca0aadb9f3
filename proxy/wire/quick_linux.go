package wire

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// quickConn reads and writes a TCP connection by raw system calls. The socket does not block,
// so the calls need no bookkeeping of the scheduler, and do not keep its monitor thread
// awake: together 2 µs per request. Like other connections, it has at most one reader and one
// writer at a time.
type quickConn struct {
	*net.TCPConn
	raw           syscall.RawConn
	reads, writes rawCall
}

// rawCall is the state of a read or write. do is allocated once for all of them.
type rawCall struct {
	do  func(fd uintptr) (done bool)
	p   []byte // the buffer to fill, or the bytes to send
	n   int    // bytes read or written so far
	err error
}

// quick returns a TCP connection as a quickConn, and any other connection unchanged.
func quick(c net.Conn) net.Conn {
	t, ok := c.(*net.TCPConn)
	if !ok {
		return c
	}
	raw, err := t.SyscallConn()
	if err != nil {
		return c
	}
	q := &quickConn{TCPConn: t, raw: raw}
	q.reads.do = q.reads.read
	q.writes.do = q.writes.write
	return q
}

// plainTCP returns a TCP connection without TLS.
func plainTCP(c net.Conn) (*net.TCPConn, bool) {
	if q, ok := c.(*quickConn); ok {
		return q.TCPConn, true
	}
	t, ok := c.(*net.TCPConn)
	return t, ok
}

// NetConn makes rawConn find the TCP connection.
func (q *quickConn) NetConn() net.Conn { return q.TCPConn }

func (q *quickConn) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	n, err := q.reads.run(p, q.raw.Read)
	if n == 0 && err == nil {
		err = io.EOF
	}
	return n, err
}

func (q *quickConn) Write(p []byte) (int, error) { return q.writes.run(p, q.raw.Write) }

// run calls do until it is done. wait is the method of the connection that waits for the
// socket in between, until the deadline.
func (r *rawCall) run(p []byte, wait func(do func(fd uintptr) bool) error) (int, error) {
	r.p, r.n, r.err = p, 0, nil
	err := wait(r.do)
	r.p = nil
	if err == nil {
		err = r.err
	}
	return r.n, err
}

func (r *rawCall) read(fd uintptr) (done bool) {
	for {
		n, err := rawRead(int(fd), r.p) // #nosec G115 -- a descriptor
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EAGAIN):
			return false
		case err != nil:
			r.err = os.NewSyscallError("read", err)
		default:
			r.n = n
		}
		return true
	}
}

func (r *rawCall) write(fd uintptr) (done bool) {
	for r.n < len(r.p) {
		n, err := rawWrite(fd, r.p[r.n:])
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EAGAIN):
			return false
		case err != nil:
			r.err = os.NewSyscallError("write", err)
			return true
		}
		r.n += n
	}
	return true
}
