package proxy

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
)

// secret is a user's text. The message of a bug may contain it, the log must not.
const secret = "Miso is a cat"

// bug panics.
func bug() { panic(errors.New(secret)) }

// wantBug checks how many times a log reports the position of a bug.
func wantBug(t *testing.T, log *lines, times int, where string) {
	t.Helper()
	got := log.String()
	if strings.Count(got, "a bug was contained") != times || !strings.Contains(got, "/proxy."+where) || strings.Contains(got, secret) {
		t.Errorf("log: %s", got)
	}
}

// unwell is a log handler that panics once.
type unwell struct {
	slog.Handler
	was *atomic.Bool
}

func (u unwell) Handle(ctx context.Context, r slog.Record) error {
	if r.Message == "an answer is cut off" && !u.was.Swap(true) {
		bug()
	}
	return u.Handler.Handle(ctx, r)
}

// TestBugInARequest checks that a panic ends the connection of its request, and no other
// connection.
func TestBugInARequest(t *testing.T) {
	w := newStub(t, func(_ *stub, c net.Conn, request string) bool {
		if strings.HasPrefix(request, "GET /cut ") {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n")
			return false
		}
		return say(okAnswer)(nil, c, request)
	})
	log := &lines{}
	s, base := start(t, w.url(), func(o *Options) {
		o.Log = slog.New(unwell{slog.NewTextHandler(log, nil), new(atomic.Bool)})
	})
	other := dial(t, s)
	if got, err := talk(t, s, "GET /cut HTTP/1.1\r\nHost: p\r\n\r\n"); err == nil {
		t.Errorf("the connection ended as if the answer were whole: %q", got)
	}
	_, _ = io.WriteString(other, "GET / HTTP/1.1\r\nHost: p\r\n\r\n")
	if resp, err := http.ReadResponse(newReader(other), nil); err != nil || resp.StatusCode != http.StatusOK {
		t.Errorf("another connection: %v, %v", resp, err)
	}
	post(t, client(t), base+"/v1/x", "{}", http.StatusOK)
	wantBug(t, log, 1, "bug(")
}
