package terminal

import (
	"fmt"
	"io"
)

// Progress counts the parts of a task on a terminal. Without a terminal it shows nothing.
type Progress struct {
	w     io.Writer // nil hides the progress
	what  string    // a part
	total int64     // bytes of the task, or 0 if unknown
	read  int64
	shown bool
}

// NewProgress returns a Progress on w for a task of total bytes. The noun of a part is what.
func NewProgress(w io.Writer, what string, total int64) *Progress {
	p := &Progress{what: what, total: total}
	if Is(w) {
		p.w = w
	}
	return p
}

// Write counts bytes read.
func (p *Progress) Write(b []byte) (int, error) {
	p.read += int64(len(b))
	return len(b), nil
}

// Show updates the number of finished parts.
func (p *Progress) Show(n int) {
	if p.w == nil {
		return
	}
	p.shown = true
	fmt.Fprintf(p.w, "\r\x1b[K%s", Count(n, p.what))
	if p.total > 0 {
		fmt.Fprintf(p.w, ", %d%% of the file", min(100, 100*p.read/p.total))
	}
}

// End ends the line.
func (p *Progress) End() {
	if p.shown {
		fmt.Fprintln(p.w)
	}
}
