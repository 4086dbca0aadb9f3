package proxy

import (
	"fmt"
	"log/slog"
	"path"
	"runtime"
	"strings"
)

// contained runs what a request can do without. A bug in it ends there:
// fasthttp lets a panic end the process, and so does a goroutine of ours.
func contained(log *slog.Logger, part string, f func()) {
	defer func() {
		if r := recover(); r != nil {
			tellBug(log, part, r)
		}
	}()
	f()
}

// caught is deferred where what panics cannot go on: end ends it.
func (s *Server) caught(part string, end func()) {
	if r := recover(); r != nil {
		tellBug(s.log, part, r)
		end()
	}
}

// tellBug logs a panic. Its own words may quote somebody, other than those of
// the runtime's.
func tellBug(log *slog.Logger, part string, r any) {
	what := fmt.Sprintf("%T", r)
	if e, ok := r.(runtime.Error); ok {
		what = e.Error()
	}
	log.Error("a bug was contained; please report it", "part", part, "panic", what, "at", bugSite())
}

// bugSite is the top of the stack that has panicked.
func bugSite() string {
	var pcs [24]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs[:])])
	var top []string
	panicked := false
	for more := true; more && len(top) < 4; {
		var f runtime.Frame
		f, more = frames.Next()
		switch {
		case f.Function == "runtime.gopanic":
			panicked = true
		case panicked && !strings.HasPrefix(f.Function, "runtime."):
			top = append(top, fmt.Sprintf("%s:%d", path.Base(f.Function), f.Line))
		}
	}
	return strings.Join(top, " < ")
}

// finish gives a call back. It is deferred by serve, of which a bug ends the
// client's connection: nobody can say what was answered.
func (s *Server) finish(c *call) {
	r := recover()
	if r == nil {
		c.release()
		return
	}
	tellBug(s.log, "a request", r)
	c.share.Release()
	c.abandon()
	if c.pump != nil {
		c.pump.join(c)
	}
	c.client.mute()
	c.client.reset()
	c.ctx.SetConnectionClose()
	// The call is not used again: what broke may still hold it.
}
