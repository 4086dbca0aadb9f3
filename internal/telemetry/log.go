package telemetry

import (
	"context"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/internal/terminal"
)

// NewLogger returns a logger of text or JSON to a file; "auto" selects text on a terminal.
func NewLogger(f *os.File, format string, level slog.Leveler) *slog.Logger {
	o := &slog.HandlerOptions{Level: level}
	switch text := format == "text" || format == "auto" && terminal.Is(f); {
	case text && terminal.Is(f):
		return slog.New(shortRequests{slog.NewTextHandler(f, o), f, os.Getenv("NO_COLOR") == ""})
	case text:
		return slog.New(slog.NewTextHandler(f, o))
	}
	return slog.New(slog.NewJSONHandler(f, o))
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

func (q quiet) WithAttrs(attrs []slog.Attr) slog.Handler {
	return quiet{q.Handler.WithAttrs(attrs), q.seen}
}

func (q quiet) WithGroup(name string) slog.Handler { return quiet{q.Handler.WithGroup(name), q.seen} }

// Always returns a logger that ignores the level.
func Always(log *slog.Logger) *slog.Logger { return slog.New(always{log.Handler()}) }

type always struct{ slog.Handler }

func (always) Enabled(context.Context, slog.Level) bool { return true }

func (a always) WithAttrs(attrs []slog.Attr) slog.Handler { return always{a.Handler.WithAttrs(attrs)} }

func (a always) WithGroup(name string) slog.Handler { return always{a.Handler.WithGroup(name)} }
