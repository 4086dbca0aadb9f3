package wire

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
	"go.uber.org/goleak"

	"github.com/graphiti-proxy/graphiti-proxy/internal/helptest"
)

var must = helptest.Must

// TestMain fails if a goroutine is left.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newWire returns a Wire and its log.
func newWire(t *testing.T) (*Wire, *bytes.Buffer) {
	t.Helper()
	log := &bytes.Buffer{}
	w := New(Options{Own: never, OwnAnswer: never, MakeRoom: func() {}, Log: slog.New(slog.NewTextHandler(log, nil))})
	return w, log
}

func never([]byte) bool { return false }

// bug panics with the text of a message.
func bug() { panic(errors.New("Miso is a cat")) }

// wantBug checks that the log reports the bug once, with its location and without its text.
func wantBug(t *testing.T, log *bytes.Buffer) {
	t.Helper()
	got := log.String()
	if strings.Count(got, "a bug was contained") != 1 || !strings.Contains(got, "/wire.bug(") || strings.Contains(got, "Miso") {
		t.Errorf("log: %s", got)
	}
}

// broken is a body that panics.
type broken struct{}

func (broken) Read([]byte) (int, error) { bug(); return 0, nil }

// pair returns the two ends of a connection.
func pair(t *testing.T) (net.Conn, net.Conn) {
	t.Helper()
	a, b := net.Pipe()
	t.Cleanup(func() { a.Close(); b.Close() })
	return a, b
}

// TestBugInATunnel checks that a panic in either direction closes both connections of a
// tunnel.
func TestBugInATunnel(t *testing.T) {
	for _, down := range []bool{true, false} {
		w, log := newWire(t)
		client, clients := pair(t)
		up, ups := pair(t)
		copied := func(from net.Conn) func() { return func() { _, _ = io.Copy(io.Discard, from) } }
		if down {
			w.pipe(&upstreamConn{Conn: up}, newClientConn(client, Timeouts{}), bug, copied(client))
		} else {
			w.pipe(&upstreamConn{Conn: up}, newClientConn(client, Timeouts{}), copied(up), bug)
		}
		for _, c := range []net.Conn{clients, ups} {
			if _, err := c.Read(make([]byte, 1)); err != io.EOF { //nolint:errorlint // a net.Pipe returns it bare
				t.Errorf("down %v: a side goes on: %v", down, err)
			}
		}
		wantBug(t, log)
	}
}

// TestBugInABody checks that a panic in the body of a request ends the request and closes
// its upstream connection.
func TestBugInABody(t *testing.T) {
	w, log := newWire(t)
	client, _ := pair(t)
	up, ups := pair(t)
	x := &Exchange{link: new(link), w: w, timeouts: Timeouts{Idle: time.Minute}, ctx: &fasthttp.RequestCtx{}, client: newClientConn(client, Timeouts{}), rest: broken{}, out: []byte("POST / HTTP/1.1\r\n\r\n")}
	conn := &upstreamConn{Conn: up}
	x.attach(conn)
	x.pump = startPump(x, conn)
	if _, err := io.ReadAll(ups); err != nil {
		t.Error(err)
	}
	if <-x.pump.done; x.pump.join(x) || !x.Gone() {
		t.Errorf("whole, or abandoned: %v", x.Gone())
	}
	wantBug(t, log)
}

// TestHangupsOfManyAtTheSameTime watches and forgets links concurrently, for the race
// detector. The index of a link changes when another link is removed.
func TestHangupsOfManyAtTheSameTime(t *testing.T) {
	var h hangups
	var wg sync.WaitGroup
	for range 8 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for range 500 {
				c := new(link)
				h.watch(c, 0)
				h.forget(c)
				h.forget(c)
			}
		}()
	}
	wg.Wait()
	if len(h.links) != 0 {
		t.Errorf("%d links are left", len(h.links))
	}
}
