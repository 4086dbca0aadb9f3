package terminal

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// every is how often Progress prints where there is no terminal.
const every = 5 * time.Second

// Progress shows how far something has come: a bar on a terminal, elsewhere a
// line now and then.
type Progress struct {
	w     io.Writer
	total int64 // bytes to be read; 0: not known
	read  int64
	last  time.Time
	shown bool
}

// NewProgress shows on w how much of total bytes has been read through it.
func NewProgress(w io.Writer, total int64) *Progress {
	return &Progress{w: w, total: total, last: time.Now()}
}

// Write counts what was read.
func (p *Progress) Write(b []byte) (int, error) {
	p.read += int64(len(b))
	return len(b), nil
}

// Show shows a text, behind a bar where the total is known.
func (p *Progress) Show(text string) {
	bar := Is(p.w)
	if !bar && time.Since(p.last) < every {
		return
	}
	if p.total > 0 {
		percent := min(100, p.read*100/p.total)
		text = fmt.Sprintf("[%-20s] %3d%%  %s", strings.Repeat("#", int(percent/5)), percent, text)
	}
	p.last, p.shown = time.Now(), true
	if bar {
		fmt.Fprintf(p.w, "\r\x1b[K%s", text)
		return
	}
	fmt.Fprintln(p.w, text)
}

// End leaves the line of the bar.
func (p *Progress) End() {
	if p.shown && Is(p.w) {
		fmt.Fprintln(p.w)
	}
}
