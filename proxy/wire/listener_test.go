package wire

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// TestAcceptPausesAndEnds: the pauses grow to a second, and the end of the
// listener ends one.
func TestAcceptPausesAndEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		errs := make([]error, 12)
		for i := range errs {
			errs[i] = syscall.EMFILE
		}
		f := &failing{Listener: closedListener{}, errs: errs}
		l := NewListener(f, ListenerOptions{Log: slog.New(slog.DiscardHandler), MakeRoom: func() {}})
		began := time.Now()
		if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
		// 5, 10, 20 … 640 ms, and then four seconds.
		if took, want := time.Since(began), 1275*time.Millisecond+4*time.Second; took != want {
			t.Errorf("%d failures took %s, want %s", len(errs), took, want)
		}
		f.errs = []error{syscall.EMFILE}
		ended := make(chan error, 1)
		go func() { _, err := l.Accept(); ended <- err }()
		synctest.Wait()
		began = time.Now()
		_ = l.Close()
		if err := <-ended; !errors.Is(err, net.ErrClosed) || time.Since(began) > 0 {
			t.Errorf("%v after %s", err, time.Since(began))
		}
	})
}

// TestAccept_BrokenListener checks that Accept returns a lasting error.
func TestAccept_BrokenListener(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		errs := make([]error, 100)
		for i := range errs {
			errs[i] = syscall.EBADF
		}
		f := &failing{Listener: closedListener{}, errs: errs}
		l := NewListener(f, ListenerOptions{Log: slog.New(slog.DiscardHandler)})
		if _, err := l.Accept(); !errors.Is(err, syscall.EBADF) {
			t.Errorf("Accept() = %v, want %v", err, syscall.EBADF)
		}
	})
}

type closedListener struct{ net.Listener }

func (closedListener) Accept() (net.Conn, error) { return nil, net.ErrClosed }
func (closedListener) Close() error              { return nil }

// failing is a listener that fails before it accepts.
type failing struct {
	net.Listener
	mu   sync.Mutex // guards errs
	errs []error
}

func (f *failing) Accept() (net.Conn, error) {
	f.mu.Lock()
	if len(f.errs) > 0 {
		err := f.errs[0]
		f.errs = f.errs[1:]
		f.mu.Unlock()
		return nil, &net.OpError{Op: "accept", Net: "tcp", Err: err}
	}
	f.mu.Unlock()
	return f.Listener.Accept()
}

func TestPrefixOf(t *testing.T) {
	for addr, want := range map[string]string{
		"192.0.2.1":            "192.0.2.1/32",
		"::ffff:192.0.2.1":     "192.0.2.1/32",
		"2001:db8:1:2::1":      "2001:db8:1:2::/64",
		"2001:db8:1:2:ffff::1": "2001:db8:1:2::/64",
		"fe80::1%eth0":         "fe80::/64",
	} {
		ip, zone, _ := strings.Cut(addr, "%")
		if got := prefixOf(&net.TCPAddr{IP: net.ParseIP(ip), Zone: zone}); got.String() != want {
			t.Errorf("%s: %s, want %s", addr, got, want)
		}
	}
	if p := prefixOf(&net.UnixAddr{Name: "/x"}); p.IsValid() {
		t.Errorf("a Unix socket has the network %v, want none", p)
	}
}

// TestNewConnectionMakesNoRoom: where descriptors have run out, a client that
// has just connected is not closed before it can say anything.
func TestNewConnectionMakesNoRoom(t *testing.T) {
	for silent, want := range map[time.Duration]bool{0: true, 2 * timeToSpeak: false} {
		here, there := net.Pipe()
		t.Cleanup(func() { _ = there.Close() })
		c := &clientConn{Conn: here}
		c.idleSince.Store(time.Now().Add(-silent).UnixNano())
		cs := ClientConns{open: map[*clientConn]struct{}{c: {}}}
		c.all = &cs
		cs.MakeRoom()
		_ = there.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
		if _, err := there.Read(make([]byte, 1)); errors.Is(err, os.ErrDeadlineExceeded) != want {
			t.Errorf("silent for %s: %v", silent, err)
		}
	}
}

// TestAddressIsDropped checks that an address without connections is not stored.
func TestAddressIsDropped(t *testing.T) {
	cs := NewClientConns(10, 2, 10)
	for range 3 {
		var open []*clientConn
		for i, want := range []string{admitted, admitted, tooManyOf} {
			here, there := net.Pipe()
			t.Cleanup(func() { _ = here.Close(); _ = there.Close() })
			c := newClientConn(addressed{here}, Timeouts{})
			if why := cs.admit(c); why != want {
				t.Errorf("connection %d: %q, want %q", i, why, want)
			}
			open = append(open, c)
		}
		for _, c := range open {
			_, _ = c.Close(), c.Close()
		}
		if len(cs.open)+len(cs.from) > 0 {
			t.Errorf("%d connections and %d addresses are kept", len(cs.open), len(cs.from))
		}
	}
}

// addressed is a connection from an address of the internet's.
type addressed struct{ net.Conn }

func (addressed) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 1} }

// from is a connection of some address.
type from struct {
	net.Conn
	addr net.Addr
}

func (f from) RemoteAddr() net.Addr { return f.addr }

// TestClientsOfOtherNetworksAreTurnedAway, with a sentence; this machine's own
// are always served.
func TestClientsOfOtherNetworksAreTurnedAway(t *testing.T) {
	l := NewListener(closedListener{}, ListenerOptions{
		Log: slog.New(slog.DiscardHandler), Conns: NewClientConns(10, 0, 10), Timeouts: func() Timeouts { return Timeouts{} },
		Allow: []netip.Prefix{netip.MustParsePrefix("172.16.0.0/12"), netip.MustParsePrefix("2001:db8::/32")},
	})
	for address, served := range map[string]bool{
		"172.17.0.1:1": true, "[::ffff:172.31.255.255]:1": true, "[2001:db8:1::1]:1": true, "127.0.0.1:1": true, "[::1]:1": true,
		"172.32.0.1:1": false, "192.168.1.7:1": false, "[2001:db9::1]:1": false, "[fe80::1%1]:1": false,
	} {
		near, far := net.Pipe()
		said := make(chan string, 1)
		go func() { _, _ = far.Write([]byte("G")); b, _ := io.ReadAll(far); said <- string(b) }()
		c := l.admit(from{near, net.TCPAddrFromAddrPort(netip.MustParseAddrPort(address))})
		if (c != nil) != served {
			t.Errorf("%s is served: %v", address, c != nil)
		}
		if c != nil {
			_ = c.Close()
		}
		if got := <-said; strings.Contains(got, "listen.allow") == served {
			t.Errorf("%s is told %q", address, got)
		}
	}
}

// TestRefusedClientsAreHeardFirst: the answer follows the request, a silent
// client gets it after a second, and one too many at once.
func TestRefusedClientsAreHeardFirst(t *testing.T) {
	for name, tc := range map[string]struct {
		speaks, busy, closes bool
		after                time.Duration
		told                 bool
	}{
		"speaks":           {speaks: true, told: true},
		"silent":           {after: refusingTime, told: true},
		"one too many":     {busy: true, told: true},
		"the proxy closes": {closes: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := NewListener(closedListener{}, ListenerOptions{Log: slog.New(slog.DiscardHandler), Allow: []netip.Prefix{netip.MustParsePrefix("198.51.100.0/24")}})
				for tc.busy && len(l.refusal) < cap(l.refusal) {
					l.refusal <- struct{}{}
				}
				near, far := net.Pipe()
				var got []byte
				began, ended := time.Now(), make(chan struct{})
				go func() { got, _ = io.ReadAll(far); close(ended) }()
				go l.admit(addressed{near})
				synctest.Wait()
				if tc.closes {
					_ = l.Close()
				}
				if tc.speaks {
					_, _ = far.Write([]byte("G"))
				}
				<-ended
				if took := time.Since(began); took != tc.after || strings.Contains(string(got), "listen.allow") != tc.told {
					t.Errorf("after %s: %q", took, got)
				}
			})
		})
	}
}
