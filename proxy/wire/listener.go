package wire

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"time"
)

// longestPause limits the listener's pause after an error.
const longestPause = time.Second

// ListenerOptions configures a Listener. All fields but TLS and Allow are required.
type ListenerOptions struct {
	Conns    *ClientConns
	TLS      *tls.Config    // nil disables TLS
	Allow    []netip.Prefix // client networks to serve, besides this machine; empty allows all
	Timeouts func() Timeouts

	// MakeRoom closes idle connections. The listener calls it when file descriptors
	// have run out.
	MakeRoom func()

	Log *slog.Logger
}

// Listener accepts client connections. fasthttp stops serving at any error, so Accept
// returns one only after Close, or if the listener is broken.
type Listener struct {
	net.Listener
	o       ListenerOptions
	open    context.Context // canceled by Close
	close   context.CancelFunc
	refusal chan struct{} // limits concurrent readAndRefuse calls
}

// NewListener returns a Listener that accepts from a bound listener.
func NewListener(l net.Listener, o ListenerOptions) *Listener {
	open, end := context.WithCancel(context.Background())
	return &Listener{Listener: l, o: o, open: open, close: end, refusal: make(chan struct{}, maxRefusing)}
}

// Accept returns the next connection to serve.
func (l *Listener) Accept() (net.Conn, error) {
	var pause time.Duration
	for {
		c, err := l.Listener.Accept()
		switch {
		case err == nil:
			pause = 0
			if cc := l.admit(c); cc != nil {
				return cc, nil
			}
		case errors.Is(err, net.ErrClosed), pause == longestPause && !NoDescriptors(err):
			return nil, err
		default:
			pause = min(max(2*pause, 5*time.Millisecond), longestPause)
			l.acceptFails(err, pause)
			if !l.wait(pause) {
				return nil, net.ErrClosed
			}
		}
	}
}

// admit wraps and counts a client's connection. It returns nil after refusing one.
func (l *Listener) admit(raw net.Conn) *clientConn {
	if from, ok := l.allowed(raw.RemoteAddr()); !ok {
		l.o.Log.Warn("a client is turned away: its address is in no network of listen.allow", "address", from.String())
		l.refuse(raw, answerOf("403 Forbidden", notAllowed))
		return nil
	}
	c := newClientConn(raw, l.o.Timeouts())
	why := l.o.Conns.admit(c)
	if why == admitted {
		if l.o.TLS != nil {
			c.Conn, c.tls = tls.Server(raw, l.o.TLS), true // handshakes at the first read, under its deadline
		}
		return c
	}
	l.o.Log.Warn("clients are turned away", "reason", why)
	l.refuse(raw, answerOf("503 Service Unavailable\r\nRetry-After: 1", why))
	return nil
}

// notAllowed is the reason to refuse a client from another network.
const notAllowed = "graphiti-proxy: your address is in no network of the setting listen.allow"

// allowed reports whether clients from an address are served.
func (l *Listener) allowed(a net.Addr) (from netip.Addr, ok bool) {
	if t, isTCP := a.(*net.TCPAddr); isTCP {
		from = t.AddrPort().Addr().Unmap().WithZone("")
	}
	return from, len(l.o.Allow) == 0 || from.IsLoopback() ||
		slices.ContainsFunc(l.o.Allow, func(p netip.Prefix) bool { return p.Contains(from) })
}

// Close makes Accept return.
func (l *Listener) Close() error {
	l.close()
	return l.Listener.Close()
}

// wait waits for a pause, and reports whether the listener is still open.
func (l *Listener) wait(pause time.Duration) bool {
	t := time.NewTimer(pause)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-l.open.Done():
		return false
	}
}

// acceptFails logs an accept error, and frees file descriptors if they have run out.
func (l *Listener) acceptFails(err error, pause time.Duration) {
	if !NoDescriptors(err) {
		l.o.Log.Warn("clients cannot be accepted for the moment", "error", err, "pause", pause.String())
		return
	}
	l.o.Log.Warn("clients cannot be accepted for the moment: the process has no file descriptors left",
		"remedy", MoreFiles)
	l.o.MakeRoom()
}
