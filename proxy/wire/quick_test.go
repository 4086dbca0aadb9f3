package wire

import (
	"bytes"
	"errors"
	"io"
	"net"
	"testing"
	"time"
)

// TestQuick_AsTCP checks that a quick connection has the deadlines, errors and bytes of the
// TCP connection.
func TestQuick_AsTCP(t *testing.T) {
	t.Parallel()
	long := bytes.Repeat([]byte("0123456789abcdef"), 1<<19) // more than the socket buffers hold
	for name, tc := range map[string]func(t *testing.T, near, far *net.TCPConn, c net.Conn){
		"a read ends at its deadline": func(t *testing.T, near, _ *net.TCPConn, c net.Conn) {
			must(t, near.SetReadDeadline(time.Now().Add(time.Millisecond)))
			if n, err := c.Read(make([]byte, 1)); n != 0 || !IsTimeout(err) {
				t.Errorf("got %d bytes and the error %v, want a timeout", n, err)
			}
		},
		"a write ends at its deadline": func(t *testing.T, near, _ *net.TCPConn, c net.Conn) {
			must(t, near.SetWriteDeadline(time.Now().Add(time.Millisecond)))
			if n, err := c.Write(long); n >= len(long) || !IsTimeout(err) {
				t.Errorf("got %d bytes and the error %v, want a timeout within %d bytes", n, err, len(long))
			}
		},
		"a long write is complete": func(t *testing.T, near, far *net.TCPConn, c net.Conn) {
			got := make(chan []byte, 1)
			go func() { // ends with the connection
				all, _ := io.ReadAll(far)
				got <- all
			}()
			if n, err := c.Write(long); n != len(long) || err != nil {
				t.Errorf("got %d bytes and the error %v, want %d", n, err, len(long))
			}
			must(t, near.CloseWrite())
			if all := <-got; !bytes.Equal(all, long) {
				t.Errorf("got %d bytes, want the %d that were written", len(all), len(long))
			}
		},
		"the end is an end": func(t *testing.T, _, far *net.TCPConn, c net.Conn) {
			must(t, far.CloseWrite())
			if n, err := c.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
				t.Errorf("got %d bytes and the error %v, want EOF", n, err)
			}
		},
		"a waiting read ends with the connection": func(t *testing.T, near, _ *net.TCPConn, c net.Conn) {
			ended := make(chan error, 1)
			go func() { // ends with the connection
				_, err := c.Read(make([]byte, 1))
				ended <- err
			}()
			must(t, near.Close())
			if err := <-ended; !errors.Is(err, net.ErrClosed) {
				t.Errorf("got the error %v, want %v", err, net.ErrClosed)
			}
		},
		"a reset is an error": func(t *testing.T, _, far *net.TCPConn, c net.Conn) {
			must(t, far.SetLinger(0))
			must(t, far.Close())
			if n, err := c.Read(make([]byte, 1)); n != 0 || err == nil || errors.Is(err, io.EOF) {
				t.Errorf("got %d bytes and the error %v, want a reset", n, err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			near, far := tcpPair(t)
			tc(t, near, far, quick(near))
		})
	}
}

// tcpPair returns the two ends of a TCP connection.
func tcpPair(t *testing.T) (near, far *net.TCPConn) {
	t.Helper()
	ln, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	must(t, err)
	defer ln.Close()
	near, err = net.DialTCP("tcp", nil, ln.Addr().(*net.TCPAddr)) //nolint:forcetypeassert // the address of a TCP listener
	must(t, err)
	far, err = ln.AcceptTCP()
	must(t, err)
	t.Cleanup(func() {
		near.Close()
		far.Close()
	})
	return near, far
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
