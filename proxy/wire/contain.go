package wire

import (
	"fmt"
	"log/slog"
	"path"
	"runtime"
	"strings"
)

// Contain runs a part of the work that a request can do without, and stops a panic in
// it: in fasthttp, as in a goroutine of ours, a panic would end the process.
func Contain(log *slog.Logger, part string, f func()) {
	defer CatchPanic(log, part, func() {})
	f()
}

// CatchPanic is deferred by work that cannot go on after a panic: end ends it.
func CatchPanic(log *slog.Logger, part string, end func()) {
	if r := recover(); r != nil {
		LogPanic(log, part, r)
		end()
	}
}

// LogPanic logs what panicked, and where. It leaves out the panic's text, unless it is
// the runtime's.
func LogPanic(log *slog.Logger, part string, r any) {
	what := fmt.Sprintf("%T", r)
	if e, ok := r.(runtime.Error); ok {
		what = e.Error()
	}
	log.Error("a bug was contained; please report it", "part", part, "panic", what, "at", site())
}

// site returns the top of the stack that has panicked.
func site() string {
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
