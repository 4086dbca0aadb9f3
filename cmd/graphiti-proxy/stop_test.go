package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// stopped starts the program, calls do, ends the program with SIGTERM, and returns the time
// until it exited, its log and its error.
func stopped(t *testing.T, args []string, do func(url string)) (took time.Duration, said string, err error) {
	t.Helper()
	p := &process{t: t, args: append([]string{
		"serve", "--set", "listen=127.0.0.1:0", "--set", "admin.listen=127.0.0.1:0", "--set", "data_dir=" + t.TempDir(), "--set", "shutdown_grace=1s",
	}, args...)}
	var log bytes.Buffer
	p.stderr = &log
	p.start()
	url, _ := p.address()
	do(url)
	began := time.Now()
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	done := make(chan error, 1)
	go func() { done <- p.cmd.Wait() }()
	select {
	case err := <-done:
		return time.Since(began), log.String(), err
	case <-time.After(60 * time.Second):
		p.kill()
		t.Fatalf("it did not end: %s", log.String())
		return 0, "", nil
	}
}

// TestStopOfTheProcess checks that the process ends in time and without an error, even if
// the upstream or Graphiti hangs or a client does not read.
func TestStopOfTheProcess(t *testing.T) {
	t.Parallel()
	let := make(chan struct{})
	hangs := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-let:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(func() { close(let); hangs.Close() })
	endless := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		piece := bytes.Repeat([]byte("x"), 1<<16)
		for {
			if _, err := w.Write(piece); err != nil {
				return
			}
		}
	}))
	t.Cleanup(endless.Close)
	ask := func(path string, read bool) func(string) {
		return func(url string) {
			c, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
			must(t, err)
			t.Cleanup(func() { c.Close() })
			const body = `{"model":"m","stream":true,"messages":[{"role":"user","content":"hello"}]}`
			fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: p\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", path, len(body), body)
			if read {
				_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
				_, _ = c.Read(make([]byte, 1))
			}
		}
	}
	for name, tc := range map[string]struct {
		args []string
		do   func(string)
	}{
		"nothing":                     {nil, func(string) {}},
		"an upstream that hangs":      {[]string{"--set", "upstream.openai=" + hangs.URL}, ask("/v1/chat/completions", false)},
		"a client that does not read": {[]string{"--set", "upstream.openai=" + endless.URL}, ask("/v1/chat/completions", true)},
		"a Graphiti that hangs": {[]string{"--set", "memory.backend=graphiti", "--set", "memory.endpoint=" + hangs.URL, "--set", "memory.consent=true",
			"--set", "upstream.openai=" + endless.URL}, ask("/v1/chat/completions", true)},
		"one over MCP": {[]string{"--set", "memory.backend=graphiti-mcp", "--set", "memory.endpoint=" + hangs.URL, "--set", "memory.consent=true",
			"--set", "upstream.openai=" + endless.URL}, ask("/v1/chat/completions", true)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			took, said, err := stopped(t, tc.args, tc.do)
			if err != nil || took > time.Second+stopBound {
				t.Errorf("%s, %v: got %s, want no error, within %s", took, err, said, time.Second+stopBound)
			}
			t.Log(took)
		})
	}
}

// TestSecondSignalEndsAtOnce checks that a second signal ends the process without waiting
// for open streams.
func TestSecondSignalEndsAtOnce(t *testing.T) {
	t.Parallel()
	let, asked := make(chan struct{}), make(chan struct{})
	hangs := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(asked)
		select {
		case <-let:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(func() { close(let); hangs.Close() })
	p := &process{t: t, args: []string{
		"serve", "--set", "listen=127.0.0.1:0", "--set", "admin.listen=127.0.0.1:0", "--set", "data_dir=" + t.TempDir(), "--set", "upstream.openai=" + hangs.URL, "--set", "shutdown_grace=1h",
	}}
	log, err := os.CreateTemp(t.TempDir(), "log")
	must(t, err)
	t.Cleanup(func() { _ = log.Close() })
	p.stderr = log
	p.start()
	t.Cleanup(p.kill)
	url, _ := p.address()
	go func() {
		if resp, err := http.Get(url + "/v1/models"); err == nil {
			resp.Body.Close()
		}
	}()
	<-asked
	// Not SIGINT, which test runs in the background ignore.
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	for said := ""; !strings.Contains(said, "shutting down"); {
		b, err := os.ReadFile(log.Name())
		must(t, err)
		said = string(b)
	}
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	var exit *exec.ExitError
	if err := p.cmd.Wait(); !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGTERM { //nolint:forcetypeassert // on Unix
		t.Errorf("it ended with %v", err)
	}
}

// TestStopLogsUndeliveredTurns checks that a shutdown logs the number of undelivered turns and
// their queue if Graphiti is down, and logs no such line with the embedded memory.
func TestStopLogsUndeliveredTurns(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := start(t, dir, map[string]string{"memory.backend": "graphiti", "memory.endpoint": "http://127.0.0.1:1", "memory.consent": "true"})
	w.say("My cat is called Miso.")
	waitUntil(t, "the turn", func() bool { return w.app.memory().queue().Pending == 1 })
	w.stop()
	if want := "stay in the queue, and are delivered after the next start\" turns=1"; !strings.Contains(w.log.String(), want) {
		t.Errorf("the log lacks %s: %s", want, w.log)
	}
	with := start(t, t.TempDir(), nil)
	with.say("My cat is called Miso.")
	with.delivered(1)
	with.stop()
	if strings.Contains(with.log.String(), "undelivered turns") {
		t.Errorf("nothing waits in an embedded memory: %s", with.log)
	}
}

// TestStopIsBounded: a part that hangs, such as one that writes to a disk that
// does not answer, is left behind and named; the others end all the same.
func TestStopIsBounded(t *testing.T) {
	const grace = 30 * time.Second
	for name, tc := range map[string]struct {
		hang   []string
		grace  bool // whether the context ends
		longer time.Duration
	}{
		"none":           {nil, true, -grace},
		"one":            {[]string{"ingestion"}, true, stopBound},
		"without an end": {[]string{"ingestion"}, false, stopBound},
		"some":           {[]string{"probe", "ingestion"}, true, stopBound + leastBound},
		"all":            {[]string{"listeners", "probe", "recall", "answers", "ingestion", "memory"}, true, stopBound + 5*leastBound},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &stopStack{Grace: grace, Log: slog.New(slog.DiscardHandler)}
				var ended []string
				let := make(chan struct{})
				s.OnUnlock("lock", func(context.Context) error { ended = append(ended, "lock"); return nil })
				for _, part := range []string{"memory", "ingestion", "answers", "recall", "probe", "listeners"} {
					s.OnClose(part, func(context.Context) error {
						if slices.Contains(tc.hang, part) {
							<-let
							return nil
						}
						ended = append(ended, part)
						return nil
					})
				}
				ctx := context.Background()
				if tc.grace {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, grace)
					defer cancel()
				}
				began := time.Now()
				err := s.Shutdown(ctx)
				if took := time.Since(began); took != grace+tc.longer {
					t.Errorf("took %s, want %s", took, grace+tc.longer)
				}
				var stuck *stuckError
				if errors.As(err, &stuck) != (len(tc.hang) > 0) {
					t.Error(err)
				} else if stuck != nil && len(stuck.Parts) != len(tc.hang) {
					t.Errorf("named %v, want %v", stuck.Parts, tc.hang)
				}
				want := 7 - len(tc.hang)
				if len(tc.hang) > 0 {
					want-- // the lock
				}
				if len(ended) != want || len(tc.hang) > 0 && slices.Contains(ended, "lock") {
					t.Errorf("ended %v", ended)
				}
				close(let)
			})
		})
	}
}

// TestAdminDoesNotHoldUpTheEnd checks that an incomplete request on the admin side delays a
// shutdown by less than four seconds, and that clients cannot connect after it.
func TestAdminDoesNotHoldUpTheEnd(t *testing.T) {
	t.Parallel()
	w := start(t, t.TempDir(), nil)
	c, err := net.Dial("tcp", w.app.admin.Addr().String())
	must(t, err)
	defer c.Close()
	if _, err := c.Write([]byte("GET /healthz HTTP/1.1\r\n")); err != nil { // incomplete
		t.Fatal(err)
	}
	resp, err := w.client.Get("http://" + w.app.admin.Addr().String() + "/healthz") // by now the first connection has been accepted
	must(t, err)
	resp.Body.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second) // less than the time limit of a silent connection
	defer cancel()
	if err := w.app.Shutdown(ctx); err != nil || ctx.Err() != nil {
		t.Errorf("got %v, %v, want no error, in time", err, ctx.Err())
	}
	if c, err := net.Dial("tcp", w.app.proxy.Addr().String()); err == nil {
		c.Close()
		t.Error("clients are let in")
	}
}
