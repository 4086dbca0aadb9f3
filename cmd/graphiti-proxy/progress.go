package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/mattn/go-isatty"

	"github.com/graphiti-proxy/graphiti-proxy/service"
)

// progress shows how far an import is: a bar on a terminal, else a line now
// and then. It counts what is read through it.
type progress struct {
	w     io.Writer
	size  int64 // of the file; 0: not known
	read  int64
	last  time.Time
	shown bool
}

// Write implements io.Writer.
func (p *progress) Write(b []byte) (int, error) {
	p.read += int64(len(b))
	return len(b), nil
}

func (p *progress) show(lines int) {
	part := ""
	if p.size > 0 {
		percent := min(100, p.read*100/p.size)
		part = fmt.Sprintf("[%-20s] %3d%%  ", strings.Repeat("#", int(percent/5)), percent)
	}
	p.print(fmt.Sprintf("%s%d lines", part, lines))
}

func (p *progress) print(text string) {
	f, isFile := p.w.(*os.File)
	bar := isFile && isatty.IsTerminal(f.Fd())
	if !bar && time.Since(p.last) < 5*time.Second {
		return
	}
	p.last, p.shown = time.Now(), true
	if bar {
		fmt.Fprintf(p.w, "\r\x1b[K%s", text)
		return
	}
	fmt.Fprintln(p.w, text)
}

func (p *progress) end() {
	if f, ok := p.w.(*os.File); ok && p.shown && isatty.IsTerminal(f.Fd()) {
		fmt.Fprintln(p.w)
	}
}

// waitFor waits until the memory has what was imported, as long as it makes
// progress: it is on disk already.
func (p *progress) waitFor(ctx context.Context, m *opened) error {
	left, err := p.wait(ctx, m, 0, time.Minute)
	if err == nil && left > 0 {
		fmt.Fprintf(p.w, "%d turns wait for the memory, which takes none; they are safe, and are delivered when it does\n", left)
	}
	return err
}

// waitForRoom waits until not too many turns wait, so that the next call is
// answered soon, however long the memory takes for a turn.
func (p *progress) waitForRoom(ctx context.Context, m *opened) error {
	left, err := p.wait(ctx, m, service.MaxPending, service.ImportTimeout)
	if err == nil && left > service.MaxPending {
		err = fmt.Errorf("%d turns wait for the memory, which has taken none for %s; see graphiti-proxy status", left, service.ImportTimeout)
	}
	return err
}

// wait waits until no more turns wait than that, or fewer have not become for
// some time. It returns how many do.
func (p *progress) wait(ctx context.Context, m *opened, most int, patience time.Duration) (int, error) {
	least, since := -1, time.Now()
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		q, err := m.counts(ctx)
		if err != nil {
			return 0, err
		}
		if least < 0 || q.Pending < least {
			least, since = q.Pending, time.Now()
		}
		if q.Pending <= most || time.Since(since) > patience {
			return q.Pending, nil
		}
		p.print(fmt.Sprintf("%d turns wait for the memory", q.Pending))
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-time.After(pause):
		}
	}
}
