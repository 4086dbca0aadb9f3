package proxy

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"strings"
	"testing"
)

// FuzzChunkTracker: in whatever pieces a body comes, its payload and its end
// are the same, and what stands behind the end is not of it.
func FuzzChunkTracker(f *testing.F) {
	f.Add([]byte("3\r\nabc\r\n0\r\n\r\nrest"), 1)
	f.Add([]byte("A;x=\"1\"\r\n0123456789\r\n0\r\nX-Sum: 1\r\n\r\n"), 2)
	f.Add([]byte("0\n\n"), 1)
	f.Add([]byte("fffffffffffffffff\r\n"), 3)
	f.Add([]byte("5\r\nab"), 4)
	f.Fuzz(func(t *testing.T, body []byte, size int) {
		whole, n, done, bad := track(body, len(body))
		size = 1 + (size&0xffff)%16
		pieces, m, done2, bad2 := track(body, size)
		if !bytes.Equal(whole, pieces) || n != m || done != done2 || bad != bad2 {
			t.Errorf("whole: %q, %d, %v, %v; in pieces of %d: %q, %d, %v, %v", whole, n, done, bad, size, pieces, m, done2, bad2)
		}
	})
}

func track(body []byte, size int) (payload []byte, used int, done, bad bool) {
	var c chunkTracker
	for len(body) > 0 && !c.done() {
		n := min(size, len(body))
		got, err := c.feed(body[:n], func(p []byte) { payload = append(payload, p...) })
		used += got
		if err != nil {
			return payload, used, false, true
		}
		body = body[n:]
	}
	return payload, used, c.done(), false
}

func TestChunkTrackerFindsTheEnd(t *testing.T) {
	for _, tc := range []struct {
		body, payload string
		used          int
		done, bad     bool
	}{
		{"3\r\nabc\r\n0\r\n\r\nrest", "abc", 13, true, false},
		{"3\r\nabc\r\n0\r\nA: b\r\n\r\n", "abc", 19, true, false},
		{"3\r\nabc\r\n0\r\n", "abc", 11, false, false},
		{"x\r\n", "", 0, false, true},
		{"3\r\nabcX", "abc", 6, false, true},
		{"\r\n", "", 0, false, true},
	} {
		payload, used, done, bad := track([]byte(tc.body), len(tc.body))
		if string(payload) != tc.payload || used != tc.used || done != tc.done || bad != tc.bad {
			t.Errorf("%q: %q, %d, %v, %v", tc.body, payload, used, done, bad)
		}
	}
}

// BenchmarkRelayStream relays a stream of 1,000 chunks, that the upstream sends
// one by one.
func BenchmarkRelayStream(b *testing.B) {
	event := []byte("d2\r\ndata: " + strings.Repeat("x", 0xd2-8) + "\n\n\r\n")
	w := newWire(b, func(_ *wire, c net.Conn, _ string) bool {
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
		for range 1000 {
			_, _ = c.Write(event)
		}
		_, err := io.WriteString(c, "0\r\n\r\n")
		return err == nil
	})
	s, _ := start(b, w.url())
	c, err := net.Dial("tcp", s.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	br := bufio.NewReaderSize(c, 64<<10)
	b.SetBytes(int64(1000 * len(event)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: p\r\n\r\n"); err != nil {
			b.Fatal(err)
		}
		for line := []byte(nil); string(line) != "0\r\n"; {
			if line, err = br.ReadSlice('\n'); err != nil {
				b.Fatal(err)
			}
		}
		if _, err := br.ReadSlice('\n'); err != nil {
			b.Fatal(err)
		}
	}
}
