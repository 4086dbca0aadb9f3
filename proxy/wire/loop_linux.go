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
	// loopRead is the most that is read of a stream at once, and so the most
	// that waits for a client that is slow.
	loopRead = 16 << 10

	// turn is how often a stream is read before the others have theirs.
	turn = 16

	// seldom is the least time between two looks for silence.
	seldom = 10 * time.Millisecond
)

// loops are as many event loops as half of the processors: the other half has
// the requests, and what is done with the copies.
type loops struct {
	all  []*loop
	next atomic.Uint32
}

func (l *loops) start(log *slog.Logger) {
	for range max(1, runtime.GOMAXPROCS(0)/2) {
		one, err := newLoop(log)
		if err != nil {
			log.Warn("streams are relayed by goroutines, because there is no event loop", "error", err)
			return
		}
		l.all = append(l.all, one)
	}
}

func (l *loops) close() {
	for _, one := range l.all {
		one.close()
	}
}

// on reports whether there are any.
func (l *loops) on() bool { return len(l.all) > 0 }

// take reports whether a loop relays the stream.
func (l *loops) take(s *Stream, end func(bool, error)) bool {
	up, ok := s.Up.(*net.TCPConn)
	if !ok || !l.on() {
		return false
	}
	client, ok := s.Client.Conn.(*net.TCPConn)
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
	on.loop.tell(s)
	return true
}

// takeOver returns the socket of a connection, which is closed: the runtime's
// poller would wake for it too, each time that the loop does.
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

// giveBack makes a connection of a socket again.
func giveBack(fd int) (net.Conn, error) {
	f := os.NewFile(uintptr(fd), "") // #nosec G115 -- a descriptor
	defer f.Close()
	return net.FileConn(f)
}

// onLoop is what a loop knows of a stream. It belongs to the loop.
type onLoop struct {
	loop   *loop
	end    func(whole bool, err error)
	up     int // the upstream's socket, which is the loop's alone
	client syscall.RawConn

	id      int32     // its place in the loop's table, plus one; 0: none
	by      time.Time // when the side that is waited for has been silent for too long
	pending []byte    // what the client's socket has not taken yet; the upstream is not read meanwhile
	failed  error     // of the body, behind what is pending
	closed  bool      // the upstream has nothing to add to what it has sent
	asked   bool      // the loop hears of the client's socket
	over    bool
	gone    atomic.Bool // it was cut
}

// cut has the loop end the stream.
func (on *onLoop) cut(s *Stream) {
	on.gone.Store(true)
	on.loop.tell(s)
}

// loop relays any number of streams, with one buffer. The kernel tells it once of
// each change of a socket. It waits in the runtime's poller for its own epoll
// set: a thread that waited there itself would take a processor from the others.
type loop struct {
	log  *slog.Logger
	epfd int
	file *os.File // of epfd
	raw  syscall.RawConn
	done chan struct{}

	mu    sync.Mutex // guards what follows
	told  []*Stream  // new, or cut
	ended bool

	// What follows belongs to the loop's goroutine.
	streams []*Stream // by id less one
	free    []int32   // ids
	more    []*Stream // had their turn, and have more
	look    time.Time // when silence is looked for
	now     time.Time

	events [128]unix.EpollEvent
	ready  int    // of them
	buf    []byte // what is read
	out    []byte // what is written
	n      int    // of it
	err    error

	wait, write func(fd uintptr) bool // made once
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
	l := &loop{log: log, epfd: fd, file: os.NewFile(uintptr(fd), "epoll"), done: make(chan struct{}), buf: make([]byte, loopRead)} // #nosec G115 -- a descriptor
	if l.raw, err = l.file.SyscallConn(); err != nil {
		_ = l.file.Close()
		return nil, err
	}
	l.wait = func(fd uintptr) (ready bool) {
		var err error
		l.ready, err = rawEpoll(fd, l.events[:])
		return l.ready > 0 || err != nil
	}
	l.write = func(fd uintptr) bool { l.n, l.err = rawWrite(fd, l.out); return true }
	// Ends with close.
	go l.run()
	return l, nil
}

func (l *loop) close() {
	l.mu.Lock()
	l.ended = true
	l.mu.Unlock()
	l.wake()
	<-l.done
	_ = l.file.Close()
}

// tell says that a stream is new, or cut.
func (l *loop) tell(s *Stream) {
	l.mu.Lock()
	l.told = append(l.told, s)
	first := len(l.told) == 1
	l.mu.Unlock()
	if first {
		l.wake()
	}
}

// wake ends the loop's wait, now or the next.
func (l *loop) wake() { _ = l.file.SetReadDeadline(time.Unix(1, 0)) }

func (l *loop) run() {
	defer close(l.done)
	var armed time.Time
	for woken := true; ; {
		if woken || !l.look.Equal(armed) { // before told is read: what comes behind it wakes again
			armed = l.look
			_ = l.file.SetReadDeadline(armed)
		}
		if !l.hear() {
			return
		}
		if l.look.Before(armed) || armed.IsZero() && !l.look.IsZero() {
			continue // a new stream is to be looked at sooner
		}
		l.ready = 0
		if len(l.more) > 0 {
			l.wait(uintptr(l.epfd)) // #nosec G115 -- a descriptor
			woken = false
		} else {
			woken = l.raw.Read(l.wait) != nil
		}
		l.now = time.Now()
		more := l.more
		l.more = nil
		for i := range l.ready {
			l.event(&l.events[i])
		}
		for _, s := range more {
			l.step(s, (*loop).pump)
		}
		if !l.look.IsZero() && !l.now.Before(l.look) {
			l.sweep()
		}
	}
}

// hear takes in what the loop was told. It reports false at the loop's end.
func (l *loop) hear() bool {
	l.mu.Lock()
	told, ended := l.told, l.ended
	l.told = nil
	l.mu.Unlock()
	if len(told) > 0 {
		l.now = time.Now()
	}
	for _, s := range told {
		switch {
		case s.on.over:
		case s.on.gone.Load():
			l.end(s, false, ErrGone)
		default:
			l.add(s)
		}
	}
	return !ended
}

func (l *loop) add(s *Stream) {
	on := s.on
	if n := len(l.free); n > 0 {
		on.id, l.free = l.free[n-1], l.free[:n-1]
	} else {
		l.streams = append(l.streams, nil)
		on.id = int32(len(l.streams)) // #nosec G115 -- bounded by the descriptors
	}
	l.streams[on.id-1] = s
	l.allow(on, s.Idle)
	if err := l.watch(on.up, &unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLRDHUP | unix.EPOLLET, Fd: on.id}); err != nil {
		l.end(s, false, err)
	}
}

// watch has the kernel tell of a socket, and of the state that it is in now.
func (l *loop) watch(fd int, e *unix.EpollEvent) error {
	return os.NewSyscallError("epoll_ctl", unix.EpollCtl(l.epfd, unix.EPOLL_CTL_ADD, fd, e))
}

func (l *loop) forget(fd int) { _ = unix.EpollCtl(l.epfd, unix.EPOLL_CTL_DEL, fd, nil) }

// allow gives the side that is waited for so much time.
func (l *loop) allow(on *onLoop, patience time.Duration) {
	if on.by = l.now.Add(patience); l.look.IsZero() || on.by.Before(l.look) {
		l.look = on.by
	}
}

// end ends the loop's part in a stream.
func (l *loop) end(s *Stream, whole bool, err error) {
	on := s.on
	if on.over {
		return
	}
	on.over, on.pending = true, nil
	if on.id > 0 {
		l.streams[on.id-1] = nil
		l.free = append(l.free, on.id)
		l.forget(on.up)
		if on.asked {
			_ = on.client.Control(func(fd uintptr) { l.forget(int(fd)) }) // #nosec G115 -- a descriptor
		}
	}
	// Ends with what there is to do about the end.
	go func() {
		if !whole {
			_ = unix.Close(on.up)
		} else if c, err := giveBack(on.up); err != nil {
			s.Lost = true
		} else {
			s.Up = c
		}
		on.end(whole, err)
	}()
}

// ofClient marks the events of clients' sockets.
const ofClient = 1

func (l *loop) event(e *unix.EpollEvent) {
	s := l.streams[e.Fd-1]
	if s == nil {
		return // it has ended a moment ago
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

// step contains bugs: one costs its stream.
func (l *loop) step(s *Stream, f func(*loop, *Stream)) {
	defer CatchPanic(l.log, "relay of a stream", func() { l.end(s, false, ErrBug) })
	if !s.on.over {
		f(l, s)
	}
}

// pump relays what the upstream has sent.
func (l *loop) pump(s *Stream) {
	on := s.on
	for range turn {
		if len(on.pending) > 0 {
			return // flush goes on with it
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
		case n == 0 && s.Body.Ends():
			l.end(s, false, io.EOF)
			return
		case n == 0:
			l.end(s, true, nil)
			return
		}
		out, failed := s.Body.Take(l.buf[:n], s.Tee)
		on.failed = failed
		l.allow(on, s.Idle)
		if l.send(s, out); on.over || n < len(l.buf) && !on.closed {
			return // the kernel tells when there is more
		}
	}
	l.more = append(l.more, s)
}

// send writes to the client. What its socket does not take waits.
func (l *loop) send(s *Stream, out []byte) {
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
	case s.Body.Done():
		l.end(s, true, nil)
	}
}

// keep holds what the client's socket does not take, and has the kernel tell
// when it does.
func (l *loop) keep(s *Stream, out []byte) {
	on := s.on
	if len(on.pending) == 0 { // else its time runs already
		l.allow(on, s.Client.Patience())
	}
	on.pending = append(on.pending[:0], out...)
	if on.asked {
		return
	}
	on.asked = true
	var err error
	failed := on.client.Control(func(fd uintptr) {
		err = l.watch(int(fd), &unix.EpollEvent{Events: unix.EPOLLOUT | unix.EPOLLET, Fd: on.id, Pad: ofClient}) // #nosec G115 -- a descriptor
	})
	if failed != nil || err != nil {
		l.end(s, false, ErrGone)
	}
}

// flush writes what waits for the client, and goes on with the upstream.
func (l *loop) flush(s *Stream) {
	if len(s.on.pending) == 0 {
		return
	}
	if l.send(s, s.on.pending); !s.on.over && len(s.on.pending) == 0 {
		l.allow(s.on, s.Idle)
		l.pump(s)
	}
}

// sweep ends the streams of which one side has been silent for too long.
func (l *loop) sweep() {
	l.look = time.Time{}
	for _, s := range l.streams {
		switch {
		case s == nil:
		case l.now.Before(s.on.by):
			if l.look.IsZero() || s.on.by.Before(l.look) {
				l.look = s.on.by
			}
		case len(s.on.pending) > 0:
			l.end(s, false, ErrGone)
		default:
			l.end(s, false, os.ErrDeadlineExceeded)
		}
	}
	if soon := l.now.Add(seldom); !l.look.IsZero() && l.look.Before(soon) {
		l.look = soon
	}
}
