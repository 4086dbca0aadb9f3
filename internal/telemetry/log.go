package telemetry

import (
	"context"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/internal/terminal"
)

// NewLogger returns a logger of text or JSON to a file; "auto" selects text on a terminal.
// Except on a terminal, lines of requests are written together, within flushAfter. flush
// writes the last ones.
func NewLogger(f *os.File, format string, level slog.Leveler) (log *slog.Logger, flush func()) {
	o := &slog.HandlerOptions{Level: level}
	text := format == "text" || format == "auto" && terminal.Is(f)
	if text && terminal.Is(f) {
		return slog.New(shortRequests{slog.NewTextHandler(f, o), f, os.Getenv("NO_COLOR") == ""}), func() {}
	}
	w := &lines{w: f}
	if text {
		return slog.New(together{Handler: slog.NewTextHandler(w, o), w: w}), w.flush
	}
	return slog.New(together{slog.NewJSONHandler(w, o), w, true}), w.flush
}

const (
	flushAfter = 100 * time.Millisecond // the most that the end of the process loses
	flushBytes = 32 << 10
)

// lines collects lines and writes them together, in order.
type lines struct {
	w io.Writer

	mu    sync.Mutex // protects the fields below, and the order of writes
	bytes []byte
	due   bool // a timer will call flush
}

// Write implements io.Writer.
func (l *lines) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bytes = append(l.bytes, line...)
	l.addedLocked()
	return len(line), nil
}

// request adds the line of a request in JSON, and reports whether it can.
func (l *lines) request(r *slog.Record) (ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.bytes, ok = appendJSON(l.bytes, r); ok {
		l.addedLocked()
	}
	return ok
}

func (l *lines) addedLocked() {
	if !l.due {
		l.due = true
		time.AfterFunc(flushAfter, l.flush)
	}
	if len(l.bytes) >= flushBytes {
		l.writeLocked()
	}
}

func (l *lines) flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.due = false
	l.writeLocked()
}

func (l *lines) writeLocked() {
	if len(l.bytes) > 0 {
		_, _ = l.w.Write(l.bytes) // there is no other place to report it
		l.bytes = l.bytes[:0]
	}
}

// together is a log handler that leaves lines of requests in w, and flushes w after others.
type together struct {
	slog.Handler
	w    *lines
	bare bool // the handler is of JSON, and adds no attributes and no group
}

// Handle implements slog.Handler.
func (t together) Handle(ctx context.Context, r slog.Record) error {
	if t.bare && r.Message == requestLine && t.w.request(&r) {
		return nil
	}
	err := t.Handler.Handle(ctx, r)
	if r.Message != requestLine {
		t.w.flush()
	}
	return err //nolint:wrapcheck // the caller ignores it
}

// WithAttrs implements slog.Handler.
func (t together) WithAttrs(attrs []slog.Attr) slog.Handler {
	return together{Handler: t.Handler.WithAttrs(attrs), w: t.w}
}

// WithGroup implements slog.Handler.
func (t together) WithGroup(name string) slog.Handler {
	return together{Handler: t.Handler.WithGroup(name), w: t.w}
}

// quietFor is the minimum interval between logs of the same warning.
const quietFor = time.Minute

// quiet is a log handler that passes each warning at most once per quietFor, with the
// number of suppressed ones, so that an outage does not fill the log.
type quiet struct {
	slog.Handler
	seen *seenWarnings
}

type seenWarnings struct {
	mu  sync.Mutex // protects all
	all map[string]*seenWarning
}

type seenWarning struct {
	last  time.Time
	quiet int // suppressed since last
}

// Quiet returns a logger that logs the same warning at most once a minute.
func Quiet(log *slog.Logger) *slog.Logger {
	return slog.New(quiet{log.Handler(), &seenWarnings{all: make(map[string]*seenWarning)}})
}

// Handle implements slog.Handler. Messages are constants, so the map stays small.
func (q quiet) Handle(ctx context.Context, r slog.Record) error {
	if r.Level != slog.LevelWarn {
		return q.Handler.Handle(ctx, r)
	}
	q.seen.mu.Lock()
	w := q.seen.all[r.Message]
	if w == nil {
		w = &seenWarning{}
		q.seen.all[r.Message] = w
	}
	if r.Time.Sub(w.last) < quietFor {
		w.quiet++
		q.seen.mu.Unlock()
		return nil
	}
	left := w.quiet
	w.last, w.quiet = r.Time, 0
	q.seen.mu.Unlock()
	if left > 0 {
		r = r.Clone()
		r.AddAttrs(slog.Int("not_logged_before", left))
	}
	return q.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (q quiet) WithAttrs(attrs []slog.Attr) slog.Handler {
	return quiet{q.Handler.WithAttrs(attrs), q.seen}
}

// WithGroup implements slog.Handler.
func (q quiet) WithGroup(name string) slog.Handler { return quiet{q.Handler.WithGroup(name), q.seen} }

// Always returns a logger that ignores the level.
func Always(log *slog.Logger) *slog.Logger { return slog.New(always{log.Handler()}) }

type always struct{ slog.Handler }

// Enabled implements slog.Handler.
func (always) Enabled(context.Context, slog.Level) bool { return true }

// WithAttrs implements slog.Handler.
func (a always) WithAttrs(attrs []slog.Attr) slog.Handler { return always{a.Handler.WithAttrs(attrs)} }

// WithGroup implements slog.Handler.
func (a always) WithGroup(name string) slog.Handler { return always{a.Handler.WithGroup(name)} }
