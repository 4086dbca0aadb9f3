package proxy

import (
	"crypto/tls"
	"errors"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"
)

// longestPause bounds how long nobody is accepted after an error.
const longestPause = time.Second

// clientListener accepts clients' connections. fasthttp gives up serving when
// it gets an error, so that it gets none that passes.
type clientListener struct {
	net.Listener
	s    *Server
	tls  *tls.Config // nil: none
	once sync.Once
	done chan struct{} // closed by Close
}

func (s *Server) newListener() *clientListener {
	return &clientListener{Listener: s.listener, s: s, tls: s.tls, done: make(chan struct{})}
}

// Accept returns the next connection that is to be served.
func (l *clientListener) Accept() (net.Conn, error) {
	var pause time.Duration
	for {
		c, err := l.Listener.Accept()
		switch {
		case err == nil:
			pause = 0
			if cc := l.admit(c); cc != nil {
				return cc, nil
			}
		case passes(err):
			pause = min(max(2*pause, 5*time.Millisecond), longestPause)
			l.s.acceptFails(err, pause)
			if !l.wait(pause) {
				return nil, net.ErrClosed
			}
		default:
			return nil, err
		}
	}
}

// admit makes the connection one of a client's. A connection too many is
// answered and closed; nil is returned.
func (l *clientListener) admit(raw net.Conn) *clientConn {
	limits := l.s.way().limits
	c := &clientConn{Conn: raw, sock: socketOf(raw), patience: limits.UpstreamIdle, silence: limits.BodyTimeout}
	c.idleSince.Store(time.Now().UnixNano())
	why := l.s.clients.admit(c)
	if why == admitted {
		if l.tls != nil {
			c.Conn = tls.Server(raw, l.tls) // shakes hands with the first read, under its deadline
		}
		return c
	}
	l.s.log.Warn("clients are turned away", "reason", why)
	if l.tls == nil { // else nothing can be said without a handshake, which takes the client's time
		_ = raw.SetWriteDeadline(time.Now().Add(refusalTime))
		_, _ = raw.Write(refusal(why))
	}
	_ = raw.Close()
	return nil
}

// Close makes Accept return.
func (l *clientListener) Close() error {
	l.once.Do(func() { close(l.done) })
	return l.Listener.Close()
}

// wait reports whether the listener is still open afterwards.
func (l *clientListener) wait(pause time.Duration) bool {
	t := time.NewTimer(pause)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-l.done:
		return false
	}
}

// acceptFails says why nobody is accepted, and makes room where that helps.
func (s *Server) acceptFails(err error, pause time.Duration) {
	if !noDescriptors(err) {
		s.log.Warn("clients cannot be accepted for the moment", "error", err, "pause", pause.String())
		return
	}
	s.log.Warn("clients cannot be accepted for the moment: the process has no file descriptors left",
		"remedy", "raise the limit of open files (ulimit -n, LimitNOFILE of systemd), or lower limits.connections")
	s.makeRoom()
}

// makeRoom gives up connections on which nothing happens, of both sides.
func (s *Server) makeRoom() {
	s.way().closeIdle(time.Now().Add(time.Hour))
	s.clients.makeRoom()
}

// noDescriptors reports whether the process, or the machine, has none left.
func noDescriptors(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// passing are errors after which accept(2) may be called again: they are the
// network's, or the connection's that was to be accepted.
var passing = []error{
	syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.EPERM, syscall.ECONNABORTED, syscall.ECONNRESET,
	syscall.EINTR, syscall.EPROTO, syscall.ENOPROTOOPT, syscall.ENETDOWN, syscall.ENETUNREACH, syscall.EHOSTDOWN, syscall.EHOSTUNREACH,
}

func passes(err error) bool {
	return isTimeout(err) || slices.ContainsFunc(passing, func(e error) bool { return errors.Is(err, e) })
}
