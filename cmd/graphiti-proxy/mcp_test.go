package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cmd/internal/cli"
	"github.com/graphiti-proxy/graphiti-proxy/internal/helptest"
)

// serveMCP calls tools of graphiti-proxy mcp in a directory, and returns the answers.
func serveMCP(t *testing.T, dir string, calls []string, args ...string) string {
	t.Helper()
	in, write := io.Pipe()
	read, out := io.Pipe()
	c := newRootCommand()
	c.SetIn(in)
	c.SetOut(out)
	c.SetErr(io.Discard)
	c.SetArgs(append([]string{"mcp", "--set", "data_dir=" + dir}, args...))
	ended := make(chan error, 1)
	go func() {
		ended <- c.ExecuteContext(cli.InEnvironment(t.Context(), cli.Environment{Vars: []string{"HOME=" + dir}, Dir: dir}))
		_ = out.Close()
	}()
	said, answers := "", bufio.NewScanner(read)
	for _, line := range append([]string{
		`{"jsonrpc":"2.0","id":"hello","method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"test"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
	}, calls...) {
		must(t, helptest.ErrorOf(io.WriteString(write, line+"\n")))
		if strings.Contains(line, `"id"`) && answers.Scan() {
			said += answers.Text() + "\n"
		}
	}
	_ = write.Close()
	if err := <-ended; err != nil {
		t.Errorf("mcp %q: %v", args, err)
	}
	return said
}

// TestMCPCommand: the tools work on the files, and through a running proxy.
func TestMCPCommand(t *testing.T) {
	t.Parallel()
	add, _ := json.Marshal(m{"jsonrpc": "2.0", "id": "add", "method": "tools/call", "params": m{"name": "add_memory", "arguments": m{"episode_body": "The server is in Bergen."}}})
	status := `{"jsonrpc":"2.0","id":"status","method":"tools/call","params":{"name":"get_status"}}`
	w := start(t, t.TempDir(), nil)
	for dir, listen := range map[string]string{t.TempDir(): "127.0.0.1:1", w.app.cfg.DataDir: w.app.admin.Addr().String()} {
		said := serveMCP(t, dir, []string{string(add), status}, "--set", "admin.listen="+listen)
		if strings.Contains(said, `"isError"`) || !strings.Contains(said, "stored as your note in this project") || !strings.Contains(said, "the memory is working") {
			t.Errorf("admin side %s: got %s, want a stored note and a working memory", listen, said)
		}
	}
}

// TestToolLines checks that empty lines are skipped, that lines that are no JSON are answered, and
// that the input ends after the answers to all requests.
func TestToolLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, answered := range []bool{true, false} {
			var out bytes.Buffer
			l := newToolLines(strings.NewReader("\n{\"id\":1,\"method\":\"ping\"}\r\n{broken\n"+`{"method":"done"}`+"\n"+`[{"id":"2","method":"ping"}]`), &out)
			lines := bufio.NewScanner(l)
			for _, want := range []string{`{"id":1,"method":"ping"}`, `{"method":"done"}`, `[{"id":"2","method":"ping"}]`} {
				if !lines.Scan() || lines.Text() != want {
					t.Errorf("got the line %q, want %q", lines.Text(), want)
				}
			}
			if !strings.Contains(out.String(), "-32700") {
				t.Errorf("got the answers %q, want -32700", out.String())
			}
			began := time.Now()
			go func() {
				for _, line := range []string{`{"id":1,"result":{}}`, `{"method":"log"}`, `[{"id":"2","result":{}}]`} {
					<-time.After(time.Second)
					if answered {
						_, _ = l.Write([]byte(line + "\n"))
					}
				}
			}()
			if lines.Scan() {
				t.Errorf("got the line %q, want the end", lines.Text())
			}
			want := 3 * time.Second
			if !answered {
				want = endOfAnswers
			}
			if took := time.Since(began); took != want {
				t.Errorf("the input ended after %s, want %s", took, want)
			}
		}
	})
}

// TestEndWithParent checks that mcp ends when its parent process has.
func TestEndWithParent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, ended := time.Now(), time.Duration(0)
		endWithParent(t.Context(), func() int {
			if time.Since(began) < time.Minute {
				return 7
			}
			return 1
		}, func() { ended = time.Since(began) })
		if ended != time.Minute {
			t.Errorf("ended after %s, want %s", ended, time.Minute)
		}
	})
}
