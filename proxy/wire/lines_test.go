package wire

import "testing"

// TestLinesOfChunksEndWithBoth checks that each line of a chunked body must end with CRLF.
// A parser that accepts CR or LF alone finds different chunks than the next program. NUL is
// valid only in the payload.
func TestLinesOfChunksEndWithBoth(t *testing.T) {
	for body, good := range map[string]bool{
		"1\r\nx\r\n0\r\n\r\n":               true,
		"1;a=b\r\nx\r\n0\r\nT: 1\r\n\r\n":   true,
		"1\nx\r\n0\r\n\r\n":                 false,
		"1\r\nx\n0\r\n\r\n":                 false,
		"1\r\nx\r\n0\n\r\n":                 false,
		"1\r\nx\r\n0\r\n\n":                 false,
		"1\r\nx\r\n0\r\nT: 1\n\r\n":         false,
		"1;a\rb\r\nx\r\n0\r\n\r\n":          false,
		"1\r\nx\r\n0\r\nT: 1\rU: 2\r\n\r\n": false,
		"1\r\nx\r\n0\r\nT: 1\x00\r\n\r\n":   false,
		"1\r\nx\r\n0\r\n\x00T: 1\r\n\r\n":   false,
		"1;a\x00b\r\nx\r\n0\r\n\r\n":        false,
		"1\r\n\x00\r\n0\r\n\r\n":            true,
	} {
		for _, size := range []int{1, len(body)} {
			var tracker chunkTracker
			var err error
			for rest := []byte(body); len(rest) > 0 && err == nil; rest = rest[min(size, len(rest)):] {
				_, err = tracker.feed(rest[:min(size, len(rest))], nil)
			}
			if (err == nil && tracker.done()) != good {
				t.Errorf("%q, in pieces of %d: %v, done %v", body, size, err, tracker.done())
			}
		}
	}
}
