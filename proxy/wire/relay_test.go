package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/tools/txtar"
)

// tcp returns the two ends of a TCP connection.
func tcp(t testing.TB) (*net.TCPConn, *net.TCPConn) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer ln.Close()
	a, err := net.Dial("tcp", ln.Addr().String())
	must(t, err)
	b, err := ln.Accept()
	must(t, err)
	t.Cleanup(func() { a.Close(); b.Close() })
	return a.(*net.TCPConn), b.(*net.TCPConn)
}

// copied is a tee that stores its input.
type copied struct{ bytes.Buffer }

func (c *copied) Write(p []byte) { c.Buffer.Write(p) }
func (c *copied) Close(bool)     {}

func ofLength(n int64) bodyEnd     { return bodyEnd{left: n} }
func inChunks(unwrap bool) bodyEnd { return bodyEnd{chunked: true, unwrap: unwrap} }
func untilClose() bodyEnd          { return bodyEnd{open: true} }

// relayed is the observable result of relaying a body.
type relayed struct {
	Client, Tee string
	Whole       bool
	Err         string
	Clean, Kept bool // no bytes follow the end; the upstream's connection is reusable
}

// play relays a body that an upstream writes in pieces.
func play(t *testing.T, body bodyEnd, pieces []string, end func(*net.TCPConn)) relayed {
	t.Helper()
	up, upstream := tcp(t)
	client, reader := tcp(t)
	tee := &copied{}
	s := &stream{link: new(link), up: &upstreamConn{Conn: up}, client: newClientConn(client, Timeouts{Idle: time.Minute}), body: body, tee: tee, idle: time.Minute}
	result := make(chan relayed, 1)
	go func() { // ends with the body
		whole, err := s.relay(new(make([]byte, firstRead)))
		r := relayed{Tee: tee.String(), Whole: whole, Err: kind(err), Clean: s.body.extra == 0}
		if whole && !s.body.open {
			_ = s.up.SetReadDeadline(time.Time{})
			_, err := io.WriteString(s.up, "again")
			r.Kept = err == nil
		}
		_ = s.client.Close()
		s.up.Close()
		result <- r
	}()
	for _, p := range pieces {
		if _, err := io.WriteString(upstream, p); err != nil {
			break
		}
	}
	if end != nil {
		end(upstream)
	}
	got, _ := io.ReadAll(reader)
	r := <-result
	r.Client = string(got)
	if r.Kept {
		b := make([]byte, 5)
		_, err := io.ReadFull(upstream, b)
		r.Kept = err == nil && string(b) == "again"
	}
	return r
}

func kind(err error) string {
	for _, k := range []error{nil, ErrGone, io.EOF, errBadChunk} {
		if errors.Is(err, k) {
			return fmt.Sprint(k)
		}
	}
	if IsTimeout(err) {
		return "timeout"
	}
	return "broken"
}

// cutIn splits a text into pieces of n bytes.
func cutIn(s string, n int) (pieces []string) {
	for ; len(s) > n; s = s[n:] {
		pieces = append(pieces, s[:n])
	}
	return append(pieces, s)
}

func finish(c *net.TCPConn) { _ = c.CloseWrite() }

func reset(c *net.TCPConn) {
	_ = c.SetLinger(0)
	_ = c.Close()
}

// TestRelay_Pieces checks the end of every kind of body, and that the relayed bytes, the error and
// the copy do not depend on the pieces.
func TestRelay_Pieces(t *testing.T) {
	const events = "b\r\ndata: one\n\n\r\nB;ext=\"1\"\r\ndata: two\n\n\r\n"
	large := fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", 300<<10, strings.Repeat("y", 300<<10))
	type testCase struct {
		name string
		body bodyEnd
		sent string
		end  func(*net.TCPConn)
		err  error // nil if the body is complete
	}
	cases := []testCase{
		{"whole", inChunks(false), events + "0\r\n\r\n", nil, nil},
		{"a trailer", inChunks(false), events + "0\r\nX-Sum: 1\r\n\r\n", nil, nil},
		{"cut between chunks", inChunks(false), events, finish, io.EOF},
		{"cut in a chunk", inChunks(false), events + "b\r\ndata: th", finish, io.EOF},
		{"cut behind the last chunk", inChunks(false), events + "0\r\n", finish, io.EOF},
		{"closed behind its end", inChunks(false), events + "0\r\n\r\n", finish, nil},
		{"a malformed chunk", inChunks(false), events + "x\r\nabc", nil, errBadChunk},
		{"a line of a chunk that ends with a line feed alone", inChunks(false), events + "1\nx\r\n0\r\n\r\n", nil, errBadChunk},
		{"payload that ends with a line feed alone", inChunks(false), events + "1\r\nx\n0\r\n\r\n", nil, errBadChunk},
		{"a carriage return in an extension", inChunks(false), events + "1;a\rb\r\nx\r\n0\r\n\r\n", nil, errBadChunk},
		{"something behind the end", inChunks(false), events + "0\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", nil, nil},
		{"a client of HTTP/1.0", inChunks(true), events + "0\r\n\r\n", nil, nil},
		{"a client of HTTP/1.0, cut", inChunks(true), events, finish, io.EOF},
		{"a length", ofLength(10), "0123456789", nil, nil},
		{"a length, cut", ofLength(11), "0123456789", finish, io.EOF},
		{"until the end", untilClose(), "0123456789", finish, nil},
		{"large", inChunks(false), large, nil, nil},
		{"large, cut", inChunks(false), large[:200<<10], finish, io.EOF},
	}
	for _, f := range fixtures(t) {
		cases = append(cases, testCase{f.name, inChunks(false), f.sent, nil, nil})
	}
	for _, tc := range cases {
		want := play(t, tc.body, []string{tc.sent}, tc.end)
		if want.Whole != (tc.err == nil) || want.Err != kind(tc.err) {
			t.Errorf("%s: got %+.300v, want the error %v", tc.name, want, tc.err)
		}
		for _, size := range []int{1, 7, 1000} {
			if len(tc.sent)/size > 2000 {
				continue
			}
			got := play(t, tc.body, cutIn(tc.sent, size), tc.end)
			switch tc.name {
			case "something behind the end": // they depend on how many bytes have arrived
				got.Clean, got.Kept = want.Clean, want.Kept
			case "closed behind its end": // likewise
				got.Kept = want.Kept
			}
			if got != want {
				t.Errorf("%s, in pieces of %d:\n%+.300v\nwant\n%+.300v", tc.name, size, got, want)
			}
		}
	}
	broken := play(t, inChunks(false), []string{events}, reset)
	if broken.Whole || broken.Err != "broken" {
		t.Errorf("reset: %+v", broken)
	}
}

type fixture struct{ name, sent string }

// fixtures returns recorded streams with one chunk per event.
func fixtures(t *testing.T) (all []fixture) {
	t.Helper()
	files, err := filepath.Glob("../../internal/dialect/*/testdata/*.txtar")
	must(t, err)
	for _, name := range files {
		a, err := txtar.ParseFile(name)
		must(t, err)
		for _, f := range a.Files {
			if !bytes.Contains(f.Data, []byte("data: ")) {
				continue
			}
			var b strings.Builder
			for event := range strings.SplitAfterSeq(string(f.Data), "\n\n") {
				if event != "" {
					fmt.Fprintf(&b, "%x\r\n%s\r\n", len(event), event)
				}
			}
			all = append(all, fixture{name, b.String() + "0\r\n\r\n"})
		}
	}
	if len(all) < 10 {
		t.Fatalf("%d recorded streams are found", len(all))
	}
	return all
}

// held is a stream, with the far ends of its connections.
type held struct {
	*stream
	upstream, reader *net.TCPConn
	ended            chan error // result of the relay; nil for a complete stream
}

func hold(t *testing.T, w *Wire, idle, patience time.Duration) held {
	t.Helper()
	up, upstream := tcp(t)
	conn, client := tcp(t)
	s := &stream{link: new(link), up: &upstreamConn{Conn: up}, client: newClientConn(conn, Timeouts{Idle: patience}), body: inChunks(false), idle: idle}
	h := held{s, upstream, client, make(chan error, 1)}
	w.hangups.watch(s.link, s.client.sock)
	s.attach(s.up)
	go func() { // ends with the stream
		_, err := s.relay(new(make([]byte, firstRead)))
		if !s.detach() && err != nil {
			err = ErrGone // as stream.end does
		}
		w.hangups.forget(s.link)
		_ = s.client.Close()
		s.up.Close()
		h.ended <- err
	}()
	return h
}

// flood writes chunks until the connection fails.
func flood(c *net.TCPConn) {
	piece := []byte("10000\r\n" + strings.Repeat("z", 1<<16) + "\r\n")
	for {
		if _, err := c.Write(piece); err != nil {
			return
		}
	}
}

// TestStreamsEnd checks that streams end that are cut, and streams with a silent or disconnected peer.
func TestStreamsEnd(t *testing.T) {
	for _, tc := range []struct {
		name           string
		idle, patience time.Duration
		happens        func(h held)
		want           string
	}{
		{"a silent upstream", 50 * time.Millisecond, time.Minute, func(held) {}, "timeout"},
		{"a client that takes nothing", time.Minute, 50 * time.Millisecond, func(h held) { flood(h.upstream) }, fmt.Sprint(ErrGone)},
		{"a client that left", time.Minute, time.Minute, func(h held) { reset(h.reader); flood(h.upstream) }, fmt.Sprint(ErrGone)},
		{"cut while both are silent", time.Minute, time.Minute, func(h held) { h.abandon() }, fmt.Sprint(ErrGone)},
		{"cut while the client takes nothing", time.Minute, time.Second, func(h held) {
			_ = h.upstream.SetWriteDeadline(time.Now().Add(200 * time.Millisecond))
			flood(h.upstream)
			h.abandon()
		}, fmt.Sprint(ErrGone)},
		{"cut twice", time.Minute, time.Minute, func(h held) { h.abandon(); h.abandon() }, fmt.Sprint(ErrGone)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			w, _ := newWire(t)
			h := hold(t, w, tc.idle, tc.patience)
			tc.happens(h)
			if err := <-h.ended; kind(err) != tc.want {
				t.Errorf("ended with %v, want %s", err, tc.want)
			}
			_ = h.upstream.SetReadDeadline(time.Now().Add(time.Minute))
			if _, err := h.upstream.Read(make([]byte, 1)); IsTimeout(err) {
				t.Error("the upstream's connection stays open")
			}
		})
	}
}
