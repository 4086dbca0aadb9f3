package proxy

import (
	"fmt"
	"log/slog"
	"runtime"
	"strings"
)

// contained runs what a request can do without. A bug in it ends there and
// nowhere else: fasthttp lets a panic end the process.
func contained(log *slog.Logger, what string, f func()) {
	defer func() {
		if r := recover(); r != nil {
			logPanic(log, what, r)
		}
	}()
	f()
}

// logPanic says where it was. What panicked may quote a conversation, unless
// it is the runtime's own.
func logPanic(log *slog.Logger, what string, r any) {
	why := fmt.Sprintf("%T", r)
	if err, ok := r.(runtime.Error); ok {
		why = err.Error()
	}
	log.Error("a bug was contained; please report it", "in", what, "error", why, "at", panicAt())
}

// panicAt names the innermost functions of ours that a panic went through.
func panicAt() string {
	var pcs [32]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(4, pcs[:])])
	var at []string
	for {
		f, more := frames.Next()
		if _, name, ours := strings.Cut(f.Function, "graphiti-proxy/graphiti-proxy/"); ours {
			at = append(at, fmt.Sprintf("%s:%d", name, f.Line))
		}
		if !more || len(at) == 3 {
			return strings.Join(at, " < ")
		}
	}
}

// finish ends a call, also one that panicked: its connection ends with it, and
// its buffers are not used again, because something may still refer to them.
func (s *Server) finish(c *call) {
	r := recover()
	if r == nil {
		c.release()
		return
	}
	logPanic(s.log, "a request", r)
	c.abandon()
	if c.client != nil {
		c.client.mute()
		_ = c.client.Close()
	}
	c.ctx.SetConnectionClose()
}
