package telemetry

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/internal/terminal"
)

// appendJSON appends a record as slog.JSONHandler writes it, in a fifth of the time. ok is
// false if the record has a value that is neither a number nor text without escapes; dst is
// unchanged then.
func appendJSON(dst []byte, r *slog.Record) (_ []byte, ok bool) {
	if ok = isPlain(r.Message); !ok {
		return dst, false
	}
	line := append(dst, `{"time":"`...)
	line = append(r.Time.Round(0).AppendFormat(line, time.RFC3339Nano), `","level":"`...)
	line = append(append(line, r.Level.String()...), `","msg":"`...)
	line = append(append(line, r.Message...), '"')
	r.Attrs(func(a slog.Attr) bool {
		ok = isPlain(a.Key)
		line = append(append(append(line, `,"`...), a.Key...), `":`...)
		switch a.Value.Kind() { //nolint:exhaustive // the default is for all others
		case slog.KindString:
			text := a.Value.String()
			ok = ok && isPlain(text)
			line = append(append(append(line, '"'), text...), '"')
		case slog.KindInt64:
			line = strconv.AppendInt(line, a.Value.Int64(), 10)
		default:
			ok = false
		}
		return ok
	})
	if !ok {
		return line[:len(dst)], false
	}
	return append(line, "}\n"...), true
}

// isPlain reports whether a text needs no escapes in JSON.
func isPlain(text string) bool {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c >= 0x7f || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

// shortRequests formats request logs for a terminal: one short line with a colored
// status.
type shortRequests struct {
	slog.Handler
	w      io.Writer // each line is one write
	colour bool
}

// requestLine is the message of a request log.
const requestLine = "request"

// Handle implements slog.Handler.
func (s shortRequests) Handle(ctx context.Context, r slog.Record) error {
	if r.Message != requestLine {
		return s.Handler.Handle(ctx, r)
	}
	of := make(map[string]string, 6)
	r.Attrs(func(a slog.Attr) bool {
		of[a.Key] = a.Value.String()
		return true
	})
	status := of["status"]
	if s.colour {
		colour := map[byte]string{'2': "32", '4': "33", '5': "31"}[(status + " ")[0]]
		if colour == "" {
			colour = "36"
		}
		status = "\x1b[" + colour + "m" + status + "\x1b[0m"
	}
	line := fmt.Sprintf("%s %s %s %s %sms", r.Time.Format(time.TimeOnly), status, of["method"], terminal.Printable(of["path"]), of["ms"])
	if memory := of["memory"]; memory != "" {
		line += " " + shortMemory(memory)
	}
	_, err := io.WriteString(s.w, line+"\n")
	return err //nolint:wrapcheck // the caller ignores it
}

// shortMemory shortens a memory outcome to its status and the number of facts, or the reason for none.
func shortMemory(outcome string) string {
	said, rest, _ := strings.Cut(outcome, "; ")
	for part := range strings.SplitSeq(rest, "; ") {
		switch name, value, _ := strings.Cut(part, "="); {
		case name == "facts" && value == "1":
			said += ", 1 fact"
		case name == "facts" && value != "0":
			said += ", " + value + " facts"
		case name == "reason":
			said += ", " + value
		}
	}
	return "memory " + said
}

// WithAttrs implements slog.Handler.
func (s shortRequests) WithAttrs(attrs []slog.Attr) slog.Handler {
	return shortRequests{s.Handler.WithAttrs(attrs), s.w, s.colour}
}

// WithGroup implements slog.Handler.
func (s shortRequests) WithGroup(name string) slog.Handler {
	return shortRequests{s.Handler.WithGroup(name), s.w, s.colour}
}
