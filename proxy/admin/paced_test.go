package admin

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
)

// once is a listener with one connection.
type once struct {
	conn chan net.Conn
	done chan struct{}
}

func (o *once) Accept() (net.Conn, error) {
	select {
	case c := <-o.conn:
		return c, nil
	case <-o.done:
		return nil, net.ErrClosed
	}
}

func (o *once) Close() error   { close(o.done); return nil }
func (o *once) Addr() net.Addr { return &net.TCPAddr{} }

// piped serves a handler within a caller's share and returns a connection to it.
func piped(t *testing.T, serve http.HandlerFunc) net.Conn {
	t.Helper()
	client, server := net.Pipe()
	ln := &once{conn: make(chan net.Conn, 1), done: make(chan struct{})}
	ln.conn <- server
	s := &Server{calls: newLimits[service.Caller](callsPerSecond, callsPerSecond), places: newPlaces(), fails: newLimits[netip.Prefix](1, 1)}
	web := &http.Server{Handler: s.limited(writeError, serve), ReadTimeout: patience, WriteTimeout: patience}
	ended := make(chan error, 1)
	go func() { ended <- web.Serve(ln) }()
	t.Cleanup(func() {
		_ = client.Close()
		_ = web.Close()
		<-ended
	})
	return client
}

// TestBodiesHaveALeastRate checks that a body below the minimum rate fails, and that a slow
// body above it arrives, however long it takes.
func TestBodiesHaveALeastRate(t *testing.T) {
	for _, tc := range []struct {
		name   string
		piece  int
		within time.Duration // deadline of the failure, or 0 if the body arrives
	}{
		{"a byte a second", 1, 2 * patience},
		{"half of the least rate", slowest / 2, 4 * patience},
		{"twice the least rate", 2 * slowest, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const pieces = 100
				got, took := make(chan error, 1), time.Duration(0)
				began := time.Now()
				c := piped(t, func(_ http.ResponseWriter, r *http.Request) {
					n, err := io.Copy(io.Discard, r.Body)
					took = time.Since(began)
					if err == nil && n != int64(pieces*tc.piece) {
						err = fmt.Errorf("%d bytes", n)
					}
					got <- err
				})
				fmt.Fprintf(c, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", pieces*tc.piece)
				go func() { _, _ = io.Copy(io.Discard, c) }()
				for range pieces {
					time.Sleep(time.Second)
					if _, err := io.WriteString(c, strings.Repeat("x", tc.piece)); err != nil {
						break
					}
				}
				switch err := <-got; {
				case tc.within == 0 && err != nil:
					t.Errorf("after %s: %v, want that it arrives", took, err)
				case tc.within > 0 && (!errors.Is(err, errSlow) || took > tc.within):
					t.Errorf("after %s: %v, want %v within %s", took, err, errSlow, tc.within)
				}
			})
		})
	}
}

// TestACallMayWait checks that a call may wait for the memory far beyond the deadlines of
// its bodies.
func TestACallMayWait(t *testing.T) {
	for name, body := range map[string]string{"with a body": "Content-Length: 1\r\n\r\nx", "without": "\r\n"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := piped(t, func(w http.ResponseWriter, r *http.Request) {
					_, _ = io.Copy(io.Discard, r.Body)
					select {
					case <-r.Context().Done():
						t.Errorf("the call was ended: %v", r.Context().Err())
					case <-time.After(time.Hour):
					}
					_, _ = io.WriteString(w, "done")
				})
				fmt.Fprint(c, "POST / HTTP/1.1\r\nHost: x\r\n"+body)
				resp, err := http.ReadResponse(bufio.NewReader(c), nil)
				if err != nil {
					t.Fatal(err)
				}
				defer resp.Body.Close()
				if got, err := io.ReadAll(resp.Body); string(got) != "done" {
					t.Errorf("got %q, %v, want done", got, err)
				}
			})
		})
	}
}

// TestAnswersThatNobodyReads checks that a call ends if its client does not read the
// answer.
func TestAnswersThatNobodyReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, ended := time.Now(), make(chan error, 1)
		c := piped(t, func(w http.ResponseWriter, _ *http.Request) {
			for {
				if _, err := io.WriteString(w, strings.Repeat("x", 4096)); err != nil {
					ended <- err
					return
				}
			}
		})
		fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		if err := <-ended; time.Since(began) > 2*patience {
			t.Errorf("after %s: %v, want within %s", time.Since(began), err, 2*patience)
		}
	})
}

// TestSlowReaders checks that a slow client gets the whole answer, however long it takes.
func TestSlowReaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const pieces = 100
		c := piped(t, func(w http.ResponseWriter, _ *http.Request) {
			for range pieces {
				_, _ = io.WriteString(w, strings.Repeat("x", 2*slowest))
			}
		})
		fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		for i := range pieces {
			time.Sleep(time.Second)
			if n, err := io.CopyN(io.Discard, resp.Body, 2*slowest); err != nil {
				t.Fatalf("piece %d: %d bytes, %v, want %d", i, n, err, 2*slowest)
			}
		}
	})
}
