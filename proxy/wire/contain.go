package wire

import (
	"fmt"
	"log/slog"
	"runtime"
	"runtime/debug"
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

// LogPanic logs a panic's type and stack. It omits the panic's text, which could quote a
// conversation, unless the text is the runtime's.
func LogPanic(log *slog.Logger, part string, r any) {
	what := fmt.Sprintf("%T", r)
	if e, ok := r.(runtime.Error); ok {
		what = e.Error()
	}
	log.Error("a bug was contained; please report it", "part", part, "panic", what, "stack", string(debug.Stack()))
}
