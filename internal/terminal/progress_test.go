package terminal

import (
	"bytes"
	"testing"
	"time"
)

func TestProgress(t *testing.T) {
	for _, tc := range []struct {
		name        string
		total, read int64
		lines       int
		note        string
		took        time.Duration
		want        string
	}{
		{"at first no rate is known", 1000, 10, 3, "", 100 * time.Millisecond, "[                    ]   1%  3 lines"},
		{"in the middle", 1000, 250, 5000, "", 2 * time.Second, "[#####               ]  25%  5000 lines, 2500 a second, 6s left"},
		{"all is read, and the memory has not taken it", 1000, 1000, 20000, "200 turns wait for the memory", 4 * time.Second,
			"[####################] 100%  20000 lines, 5000 a second, 200 turns wait for the memory"},
		{"more than was said", 1000, 1500, 1, "", 4 * time.Second, "[####################] 100%  1 line, 0 a second"},
		{"of unknown length", 0, 500, 800, "", 4 * time.Second, "800 lines, 200 a second"},
	} {
		p := NewProgress(nil, tc.total)
		p.read = tc.read
		if got := p.text(tc.lines, tc.note, tc.took); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
}

// TestProgressEndsWhole checks that progress ends at 100%, however much of the file was
// read, and that no progress is written unless the output is a terminal.
func TestProgressEndsWhole(t *testing.T) {
	var b bytes.Buffer
	p := NewProgress(&b, 1000)
	p.Show(1, "")
	p.Done(7)
	if b.Len() > 0 {
		t.Errorf("%q is written to a file", b.String())
	}
	p.w = &b
	p.Show(5, "")
	p.Done(7)
	if want := "\r\x1b[K[####################] 100%  5 lines\r\x1b[K[####################] 100%  7 lines\n"; b.String() != want {
		t.Errorf("%q, want %q", b.String(), want)
	}
}
