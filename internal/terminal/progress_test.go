package terminal

import (
	"bytes"
	"testing"
)

func TestProgress(t *testing.T) {
	for _, tc := range []struct {
		total, read int64
		want        string
	}{
		{1000, 250, "\r\x1b[K1 line, 25% of the file\r\x1b[K5 lines, 25% of the file\n"},
		{1000, 1500, "\r\x1b[K1 line, 100% of the file\r\x1b[K5 lines, 100% of the file\n"},
		{0, 500, "\r\x1b[K1 line\r\x1b[K5 lines\n"},
	} {
		for _, isTerminal := range []bool{true, false} {
			var b bytes.Buffer
			p := NewProgress(&b, "line", tc.total)
			if isTerminal {
				p.w = &b
			} else {
				tc.want = ""
			}
			p.read = tc.read
			p.Show(1)
			p.Show(5)
			p.End()
			if got := b.String(); got != tc.want {
				t.Errorf("%d of %d bytes, terminal %v: %q, want %q", tc.read, tc.total, isTerminal, got, tc.want)
			}
		}
	}
}
