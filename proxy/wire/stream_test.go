package wire

import (
	"bytes"
	"testing"
)

// FuzzChunkTracker checks that the payload and the end of a body do not depend on its
// pieces.
func FuzzChunkTracker(f *testing.F) {
	f.Add([]byte("3\r\nabc\r\n0\r\n\r\nrest"), 1)
	f.Add([]byte("A;x=\"1\"\r\n0123456789\r\n0\r\nX-Sum: 1\r\n\r\n"), 2)
	f.Add([]byte("0\n\n"), 1)
	f.Add([]byte("3\r\nabc\r\n0\r\nA: b\rc\r\n\r\n"), 1)
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
		{"3 ; a=\"b\"\r\nabc\r\n0;x\r\nA: b\r\nC: d\r\n\r\n", "abc", 35, true, false},
		{"3\nabc\r\n0\r\n\r\n", "", 1, false, true},
		{"3;a\nabc\r\n0\r\n\r\n", "", 3, false, true},
		{"3;a\rb\r\nabc\r\n", "", 4, false, true},
		{"3\r\r\nabc\r\n", "", 2, false, true},
		{"3\r\nabc\n0\r\n\r\n", "abc", 6, false, true},
		{"3\r\nabc\r\r\n0\r\n\r\n", "abc", 7, false, true},
		{"3\r\nabc\r\n0\n\r\n", "abc", 9, false, true},
		{"3\r\nabc\r\n0\r\n\n", "abc", 11, false, true},
		{"3\r\nabc\r\n0\r\n\rX", "abc", 12, false, true},
		{"3\r\nabc\r\n0\r\nA: b\n\r\n", "abc", 15, false, true},
		{"3\r\nabc\r\n0\r\nA: b\rC: d\r\n\r\n", "abc", 16, false, true},
	} {
		payload, used, done, bad := track([]byte(tc.body), len(tc.body))
		if string(payload) != tc.payload || used != tc.used || done != tc.done || bad != tc.bad {
			t.Errorf("%q: got payload %q, used %d, done %v, bad %v; want %+v", tc.body, payload, used, done, bad, tc)
		}
	}
}
