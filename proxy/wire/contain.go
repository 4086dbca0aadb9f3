package wire

import (
	"fmt"
	"log/slog"
	"path"
	"runtime"
	"strings"
)

// Contain runs f, which a request can do without, and recovers from a panic. Without it,
// a panic would end the process, in fasthttp's goroutines as in the proxy's.
func Contain(log *slog.Logger, part string, f func()) {
	defer CatchPanic(log, part, func() {})
	f()
}

// CatchPanic recovers from a panic and calls end. Defer it in work that cannot continue
// after a panic.
func CatchPanic(log *slog.Logger, part string, end func()) {
	if r := recover(); r != nil {
		LogPanic(log, part, r)
		end()
	}
}

// LogPanic logs a panic's type and place. It omits the panic's text, which could quote a
// conversation, unless the text is the runtime's.
func LogPanic(log *slog.Logger, part string, r any) {
	what := fmt.Sprintf("%T", r)
	if e, ok := r.(runtime.Error); ok {
		what = e.Error()
	}
	log.Error("a bug was contained; please report it", "part", part, "panic", what, "at", site())
}

// site returns the top frames of the panicking stack.
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
