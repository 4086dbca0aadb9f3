package terminal

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// Progress shows a progress bar of a task on a terminal, with the speed and the estimated
// remaining time. Without a terminal it shows nothing.
type Progress struct {
	w     io.Writer // nil hides the progress
	total int64     // total bytes, or 0 if unknown
	read  int64
	began time.Time
	shown bool
}

// NewProgress returns a Progress on w for a task of total bytes.
func NewProgress(w io.Writer, total int64) *Progress {
	p := &Progress{total: total, began: time.Now()}
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

// Show updates the number of finished lines; note is the reason for waiting, or "".
func (p *Progress) Show(lines int, note string) {
	if p.w == nil {
		return
	}
	p.shown = true
	fmt.Fprintf(p.w, "\r\x1b[K%s", p.text(lines, note, time.Since(p.began)))
}

// Done shows that all lines are done, and ends the bar.
func (p *Progress) Done(lines int) {
	p.read = p.total
	p.Show(lines, "")
	p.End()
}

// End ends the bar with a line feed.
func (p *Progress) End() {
	if p.shown {
		fmt.Fprintln(p.w)
		p.shown = false
	}
}

func (p *Progress) text(lines int, note string, took time.Duration) string {
	var b strings.Builder
	part := 0.0
	if p.total > 0 {
		part = min(1, float64(p.read)/float64(p.total))
		fmt.Fprintf(&b, "[%-20s] %3d%%  ", strings.Repeat("#", int(20*part)), int(100*part))
	}
	b.WriteString(Count(lines, "line"))
	if s := took.Seconds(); s >= 1 {
		fmt.Fprintf(&b, ", %.0f a second", float64(lines)/s)
	}
	if left := time.Duration(float64(took) * (1 - part) / max(part, 0.001)); part > 0 && part < 1 && took >= time.Second {
		fmt.Fprintf(&b, ", %s left", left.Round(time.Second))
	}
	if note != "" {
		b.WriteString(", " + note)
	}
	return b.String()
}
