package wire

import (
	"cmp"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// loopRead limits one read from a stream, and so the bytes pending for a slow
	// client.
	loopRead = 16 << 10

	// maxReads limits consecutive reads of one stream before the others get their turn.
	maxReads = 16
)

// loops are event loops on half of the processors. The other half serves requests and
// processes the copies of answers.
type loops struct {
	all  []*loop
	next atomic.Uint32
}

// startLoops starts the loops; close ends them.
func startLoops(log *slog.Logger) *loops {
	l := new(loops)
	for range max(1, runtime.GOMAXPROCS(0)/2) {
		one, err := newLoop(log)
		if err != nil {
			log.Warn("streams are relayed by goroutines, because there is no event loop", "error", err)
			break
		}
		l.all = append(l.all, one)
	}
	return l
}

// close ends the loops. The caller has ended all streams. close may be called twice.
func (l *loops) close() {
	for _, one := range l.all {
		one.tell(func() { one.ended = true })
		<-one.done
		_ = one.file.Close()
	}
}

// sweep makes the loops end streams that exceeded their deadlines.
func (l *loops) sweep() {
	for _, one := range l.all {
		one.tell(func() { one.due = true })
	}
}

// take passes the stream to a loop, and reports whether a loop can relay it.
func (l *loops) take(s *stream, end func(bool, error)) bool {
	up, ok := plainTCP(s.up.Conn)
	if !ok || len(l.all) == 0 {
		return false
	}
	client, ok := plainTCP(s.client.Conn)
	if !ok {
		return false
	}
	on := &onLoop{loop: l.all[l.next.Add(1)%uint32(len(l.all))], end: end, up: -1} // #nosec G115 -- a few
	var err error
	if on.client, err = client.SyscallConn(); err != nil || client.SetWriteDeadline(time.Time{}) != nil {
		return false
	}
	if on.up, err = takeOver(up); err != nil {
		return false
	}
	s.on = on
	on.loop.changes(s)
	return true
}

// takeOver returns a duplicate of a connection's socket and closes the connection.
// Otherwise the runtime's poller would also wake for each event.
func takeOver(c *net.TCPConn) (fd int, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return -1, err
	}
	failed := raw.Control(func(old uintptr) { fd, err = unix.FcntlInt(old, unix.F_DUPFD_CLOEXEC, 0) })
	if err = cmp.Or(failed, err); err != nil {
		return -1, err
	}
	_ = c.Close()
	return fd, nil
}

// giveBack returns a connection for a socket, which it closes.
func giveBack(fd int) (net.Conn, error) {
	f := os.NewFile(uintptr(fd), "") // #nosec G115 -- a descriptor
	defer f.Close()
	return net.FileConn(f)
}

// onLoop is a loop's state of a stream. The loop owns it.
type onLoop struct {
	loop   *loop
	end    func(whole bool, err error)
	up     int // the upstream's socket, owned by the loop
	client syscall.RawConn

	by      time.Time // deadline of the side that the loop waits for
	pending []byte    // bytes that the client's socket has not accepted; the upstream is not read meanwhile
	failed  error     // error in the body after pending
	closed  bool      // the upstream sends no more
	asked   bool      // the client's socket is in the epoll set
	over    bool
	gone    atomic.Bool // cut was called
}

// key identifies the stream in kernel events.
func (on *onLoop) key() int32 { return int32(on.up) } // #nosec G115 -- a descriptor

// cut makes the loop end the stream.
func (on *onLoop) cut(s *stream) {
	on.gone.Store(true)
	on.loop.changes(s)
}

// loop relays any number of streams with one buffer, using edge-triggered epoll. It
// waits for its own epoll set in the runtime's poller: a thread blocked in epoll_wait
// would take a processor from the others.
type loop struct {
	log  *slog.Logger
	epfd int
	file *os.File // of epfd
	raw  syscall.RawConn
	done chan struct{}

	mu      sync.Mutex // protects the fields below
	changed []*stream  // new or cut streams
	due     bool       // a sweep is due
	ended   bool

	// The fields below are owned by the loop's goroutine.
	streams map[int32]*stream // by the upstream's socket, see key
	more    []*stream         // streams with unread data after maxReads
	now     time.Time

	events [128]unix.EpollEvent
	buf    []byte // read buffer
	out    []byte // argument of write
	n      int    // result of write
	err    error

	wait, write func(fd uintptr) bool // closures, allocated once
}

func newLoop(log *slog.Logger) (*loop, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("epoll_create", err)
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		_ = unix.Close(fd)
		return nil, os.NewSyscallError("fcntl", err)
	}
	l := &loop{log: log, epfd: fd, file: os.NewFile(uintptr(fd), "epoll"), done: make(chan struct{}), streams: make(map[int32]*stream), buf: make([]byte, loopRead)} // #nosec G115 -- a descriptor
	if l.raw, err = l.file.SyscallConn(); err != nil {
		_ = l.file.Close()
		return nil, err
	}
	l.wait = l.turn
	l.write = func(fd uintptr) bool { l.n, l.err = rawWrite(fd, l.out); return true }
	// Ends with close.
	go l.run()
	return l, nil
}

// changes queues a new or cut stream for the loop.
func (l *loop) changes(s *stream) {
	l.tell(func() { l.changed = append(l.changed, s) })
}

// tell runs note under the lock and wakes the loop from its current or next wait.
func (l *loop) tell(note func()) {
	l.mu.Lock()
	note()
	l.mu.Unlock()
	_ = l.file.SetReadDeadline(time.Unix(1, 0))
}

func (l *loop) run() {
	defer close(l.done)
	for slept := true; ; {
		if slept { // before takeChanges: a later tell sets the deadline again
			_ = l.file.SetReadDeadline(time.Time{})
		}
		if !l.takeChanges() {
			return
		}
		if slept = false; len(l.more) > 0 {
			l.turn(uintptr(l.epfd)) // #nosec G115 -- a descriptor
		} else {
			slept = l.raw.Read(l.wait) != nil
		}
	}
}

// turn relays the data of the ready streams. It returns true if more of them may be ready, and
// false to wait. The runtime's poller remembers later events, so turn does not look for them
// again before the wait.
func (l *loop) turn(epfd uintptr) (again bool) {
	more := l.more
	l.more = nil
	ready, _ := rawEpoll(epfd, l.events[:]) // fails only after close
	l.now = time.Now()
	for i := range ready {
		l.event(&l.events[i])
	}
	for _, s := range more {
		l.step(s, (*loop).pump)
	}
	return ready == len(l.events) || len(l.more) > 0
}

// takeChanges adds new streams and ends cut and silent ones. It returns false after
// close.
func (l *loop) takeChanges() bool {
	l.mu.Lock()
	changed, due, ended := l.changed, l.due, l.ended
	l.changed, l.due = nil, false
	l.mu.Unlock()
	if len(changed) > 0 || due {
		l.now = time.Now()
	}
	for _, s := range changed {
		switch {
		case s.on.over:
		case s.on.gone.Load():
			l.end(s, false, ErrGone)
		default:
			l.add(s)
		}
	}
	if due {
		l.sweep()
	}
	return !ended
}

func (l *loop) add(s *stream) {
	l.streams[s.on.key()] = s
	l.allow(s.on, s.idle)
	if err := l.watch(s.on.up, &unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLRDHUP | unix.EPOLLET, Fd: s.on.key()}); err != nil {
		l.end(s, false, err)
	}
}

// watch adds a socket to the epoll set. The kernel also reports its current state.
func (l *loop) watch(fd int, e *unix.EpollEvent) error {
	return os.NewSyscallError("epoll_ctl", unix.EpollCtl(l.epfd, unix.EPOLL_CTL_ADD, fd, e))
}

func (l *loop) forget(fd int) { _ = unix.EpollCtl(l.epfd, unix.EPOLL_CTL_DEL, fd, nil) }

// allow sets the deadline of the side that the loop waits for.
func (l *loop) allow(on *onLoop, patience time.Duration) { on.by = l.now.Add(patience) }

// end removes a stream from the loop and calls its end function in a goroutine.
func (l *loop) end(s *stream, whole bool, err error) {
	on := s.on
	if on.over {
		return
	}
	on.over, on.pending = true, nil
	delete(l.streams, on.key())
	l.forget(on.up)
	if on.asked {
		_ = on.client.Control(func(fd uintptr) { l.forget(int(fd)) }) // #nosec G115 -- a descriptor
	}
	// Ends when on.end returns.
	go func() {
		if !whole {
			_ = unix.Close(on.up)
		} else if c, err := giveBack(on.up); err != nil {
			s.keep = false
		} else {
			s.up = &upstreamConn{Conn: quick(c), of: s.up.of, sock: socketOf(c)}
		}
		on.end(whole, err)
	}()
}

// ofClient marks the events of clients' sockets.
const ofClient = 1

func (l *loop) event(e *unix.EpollEvent) {
	s := l.streams[e.Fd]
	if s == nil {
		return // just ended
	}
	if e.Pad == ofClient {
		l.step(s, (*loop).flush)
		return
	}
	if e.Events&(unix.EPOLLRDHUP|unix.EPOLLHUP|unix.EPOLLERR) != 0 {
		s.on.closed = true
	}
	l.step(s, (*loop).pump)
}

// step calls f for a stream. A panic ends only this stream.
func (l *loop) step(s *stream, f func(*loop, *stream)) {
	defer CatchPanic(l.log, "relay of a stream", func() { l.end(s, false, errBug) })
	if !s.on.over {
		f(l, s)
	}
}

// pump relays the bytes that the upstream has sent.
func (l *loop) pump(s *stream) {
	on := s.on
	for range maxReads {
		if len(on.pending) > 0 {
			return // flush continues
		}
		n, err := rawRead(on.up, l.buf)
		switch {
		case errors.Is(err, unix.EAGAIN):
			return
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			l.end(s, false, os.NewSyscallError("read", err))
			return
		case n == 0 && !s.body.open:
			l.end(s, false, io.EOF)
			return
		case n == 0:
			l.end(s, true, nil)
			return
		}
		out, failed := s.body.take(l.buf[:n], s.tee)
		on.failed = failed
		l.allow(on, s.idle)
		if l.send(s, out); on.over || n < len(l.buf) && !on.closed {
			return // the kernel reports further data
		}
	}
	l.more = append(l.more, s)
}

// send writes to the client. Bytes that its socket does not accept become pending.
func (l *loop) send(s *stream, out []byte) {
	on := s.on
	for len(out) > 0 {
		l.out, l.n, l.err = out, 0, nil
		err := cmp.Or(on.client.Write(l.write), l.err)
		switch {
		case errors.Is(err, unix.EAGAIN):
			l.keep(s, out)
			return
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			l.end(s, false, ErrGone)
			return
		}
		s.sent(l.n)
		out = out[l.n:]
	}
	on.pending = nil
	switch {
	case on.failed != nil:
		l.end(s, false, on.failed)
	case s.body.done():
		l.end(s, true, nil)
	}
}

// keep makes out pending until the kernel reports that the client's socket is writable.
func (l *loop) keep(s *stream, out []byte) {
	on := s.on
	if len(on.pending) == 0 { // otherwise the deadline is set already
		l.allow(on, s.client.timeouts.Write)
	}
	on.pending = append(on.pending[:0], out...)
	if on.asked {
		return
	}
	on.asked = true
	var err error
	failed := on.client.Control(func(fd uintptr) {
		err = l.watch(int(fd), &unix.EpollEvent{Events: unix.EPOLLOUT | unix.EPOLLET, Fd: on.key(), Pad: ofClient}) // #nosec G115 -- a descriptor
	})
	if failed != nil || err != nil {
		l.end(s, false, ErrGone)
	}
}

// flush writes the pending bytes, and then resumes reading the upstream.
func (l *loop) flush(s *stream) {
	if len(s.on.pending) == 0 {
		return
	}
	if l.send(s, s.on.pending); !s.on.over && len(s.on.pending) == 0 {
		l.allow(s.on, s.idle)
		l.pump(s)
	}
}

// sweep ends the streams that exceeded their deadlines.
func (l *loop) sweep() {
	for _, s := range l.streams {
		switch {
		case l.now.Before(s.on.by):
		case len(s.on.pending) > 0:
			l.end(s, false, ErrGone)
		default:
			l.end(s, false, os.ErrDeadlineExceeded)
		}
	}
}
