package wire

import "testing"

// TestCarriageReturnInAValue: some take it for the end of a line.
func TestCarriageReturnInAValue(t *testing.T) {
	for head, good := range map[string]bool{
		"HTTP/1.1 200 OK\r\nX-A: b\r\nContent-Length: 0\r\n\r\n":   true,
		"HTTP/1.1 200 OK\nX-A: b\n\n":                              true,
		"HTTP/1.1 200 OK\r\nX-A: b\rX-B: c\r\n\r\n":                false,
		"HTTP/1.1 200 OK\r\nX-A: b\r\rContent-Length: 9\r\n\r\n":   false,
		"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nX-A: \rb\r\n\r\n": false,
	} {
		var h AnswerHead
		if err := parseHead([]byte(head), len(head), &h); (err == nil) != good {
			t.Errorf("%q: %v", head, err)
		}
	}
}
