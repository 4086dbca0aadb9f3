package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"

	"github.com/graphiti-proxy/graphiti-proxy/cmd/internal/cli"
	"github.com/graphiti-proxy/graphiti-proxy/config"
	"github.com/graphiti-proxy/graphiti-proxy/internal/mcpserver"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
	"github.com/graphiti-proxy/graphiti-proxy/internal/telemetry"
)

func newMCPCommand() *cobra.Command {
	c := described("mcp")
	c.RunE = configured(func(c *cobra.Command, _ []string, cfg *config.Config) error {
		srv := mcpserver.New(mcpserver.Options{
			Version: telemetry.Version(), Call: proxyOrFiles(cfg), Project: projectFinder(func() *config.Config { return cfg }), Dir: cli.Dir(c),
			Log: slog.New(slog.DiscardHandler),
		})
		ctx, cancel := context.WithCancel(c.Context())
		defer cancel()
		go endWithParent(ctx, os.Getppid, cancel)
		lines := newToolLines(c.InOrStdin(), c.OutOrStdout())
		err := srv.Run(ctx, &mcp.IOTransport{Reader: io.NopCloser(lines), Writer: lines})
		if err != nil && !errors.Is(err, io.EOF) && ctx.Err() == nil {
			return fmt.Errorf("serve the Model Context Protocol: %w", err)
		}
		return nil
	})
	return c
}

// endWithParent calls end when the process that started this one has ended: another process may
// still keep the input open. parent returns the current parent's ID.
func endWithParent(ctx context.Context, parent func() int, end func()) {
	first, every := parent(), time.NewTicker(time.Second)
	defer every.Stop()
	for parent() == first {
		select {
		case <-every.C:
		case <-ctx.Done():
			return
		}
	}
	end()
}

// endOfAnswers bounds the wait for the answers to the last requests, of which some need the client.
const endOfAnswers = 10 * time.Second

// toolLines are the input and output of a tool server, one message a line. They answer lines that
// are no JSON, and end the input after the answers to all requests.
type toolLines struct {
	in       *bufio.Scanner
	rest     []byte        // of the current line
	answered chan struct{} // an answer to a request was written

	mu      sync.Mutex // protects the fields below
	out     io.Writer
	pending int // requests without an answer
}

func newToolLines(in io.Reader, out io.Writer) *toolLines {
	l := &toolLines{in: bufio.NewScanner(in), out: out, answered: make(chan struct{}, 1)}
	l.in.Buffer(nil, mcp.DefaultMaxLineLength)
	return l
}

func (l *toolLines) Read(p []byte) (int, error) {
	for len(l.rest) == 0 {
		if !l.in.Scan() {
			l.wait()
			return 0, cmp.Or(l.in.Err(), io.EOF)
		}
		line := bytes.TrimSpace(l.in.Bytes())
		switch {
		case len(line) == 0:
			continue
		case !json.Valid(line):
			if _, err := l.Write([]byte(`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"the line is no JSON"}}` + "\n")); err != nil {
				return 0, err
			}
			continue
		}
		if request, _ := parseToolLine(line); request {
			l.count(1)
		}
		l.rest = append(bytes.Clone(line), '\n')
	}
	n := copy(p, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}

func (l *toolLines) wait() {
	end := time.After(endOfAnswers)
	for l.count(0) > 0 {
		select {
		case <-l.answered:
		case <-end:
			return
		}
	}
}

func (l *toolLines) count(more int) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pending += more
	return l.pending
}

func (l *toolLines) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n, err := l.out.Write(line)
	if _, answer := parseToolLine(line); answer {
		l.pending--
		select {
		case l.answered <- struct{}{}:
		default:
		}
	}
	return n, err //nolint:wrapcheck // the server's transport names it
}

// Close does nothing: the command's output stays open.
func (*toolLines) Close() error { return nil }

// parseToolLine reports whether a message is a request or an answer to one. A batch does what its
// first message does.
func parseToolLine(line []byte) (request, answer bool) {
	var m struct{ ID, Method json.RawMessage }
	if batch := []json.RawMessage(nil); json.Unmarshal(line, &batch) == nil && len(batch) > 0 {
		line = batch[0]
	}
	if json.Unmarshal(line, &m) != nil || m.ID == nil || string(m.ID) == "null" {
		return false, false
	}
	return m.Method != nil, m.Method == nil
}

// proxyOrFiles returns a function that runs one operation at a time through the running proxy, or else
// on the files. It opens them for one call: a proxy can start at any time.
func proxyOrFiles(cfg *config.Config) func(context.Context, service.Mountable, any) (any, error) {
	var calls sync.Mutex
	return func(ctx context.Context, op service.Mountable, in any) (out any, err error) {
		calls.Lock()
		defer calls.Unlock()
		at, err := cli.Find(ctx, target(cfg), func() (*cli.Runner, error) { return makeMemoryFiles(ctx, cfg) })
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, at.Close()) }()
		return at.Run(ctx, op, in)
	}
}
