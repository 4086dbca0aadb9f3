package dialect

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestEventReader checks that an EventReader parses streams as specified at
// https://html.spec.whatwg.org, except that the end of the stream completes its last event.
func TestEventReader(t *testing.T) {
	two := []string{"|a", "|b"}
	for _, tc := range []struct {
		name, stream string
		want         []string // name|data
	}{
		{"plain", "data: a\n\ndata: b\n\n", two},
		{"no empty line at the end", "data: a\n\ndata: b", two},
		{"CRLF and comments", ": keep-alive\r\n\r\ndata: a\r\n\r\n: PROCESSING\r\n\r\ndata: b\r\n\r\n", two},
		{"CR alone", "data: a\r\rdata: b\r\r", two},
		{"no space behind the colon", "data:a\n\ndata:b\n\n", two},
		{"data in several lines", "data: a\ndata: b\n\n", []string{"|a\nb"}},
		{"names", "event: x\ndata: a\n\ndata: b\n\n", []string{"x|a", "|b"}},
		{"a name without data", "event: x\n\ndata: a\n\n", []string{"|a"}},
		{"byte order mark", "\xef\xbb\xbfdata: a\n\ndata: b\n\n", two},
		{"garbage", "data: {{{\n\nfoo\n\n\x00\xff\ndata: a\n\ndata: b\n\n", []string{"|{{{", "|a", "|b"}},
		{"nothing", "", nil},
		{"an event that is too large is skipped", "data: " + strings.Repeat("x", maxEvent+1) + "\n\ndata: a\n\ndata: b\n\n", two},
		{"as is one of many lines", strings.Repeat("data: "+strings.Repeat("x", 1<<20)+"\n", 5) + "\ndata: a\n\ndata: b\n\n", two},
	} {
		for _, size := range []int{len(tc.stream) + 1, 1, 7} {
			if size == 1 && len(tc.stream) > 1<<20 {
				continue // slow, and no different from the other sizes
			}
			var got []string
			r := EventReader{Emit: func(name, data []byte) { got = append(got, string(name)+"|"+string(data)) }}
			for rest := tc.stream; rest != ""; {
				n := min(size, len(rest))
				r.Feed([]byte(rest[:n]))
				rest = rest[n:]
			}
			r.End()
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s, in pieces of %d (-want +got):\n%s", tc.name, size, diff)
			}
		}
	}
}
