package telemetry

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/internal/terminal"
)

// shortRequests formats request logs for a terminal: one short line with a colored
// status.
type shortRequests struct {
	slog.Handler
	w      io.Writer // each line is one write
	colour bool
}

// requestLine is the message of a request log.
const requestLine = "request"

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

func (s shortRequests) WithAttrs(attrs []slog.Attr) slog.Handler {
	return shortRequests{s.Handler.WithAttrs(attrs), s.w, s.colour}
}

func (s shortRequests) WithGroup(name string) slog.Handler {
	return shortRequests{s.Handler.WithGroup(name), s.w, s.colour}
}
