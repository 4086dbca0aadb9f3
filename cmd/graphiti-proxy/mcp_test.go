package main

import (
	"bufio"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/cmd/internal/cli"
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
		if _, err := io.WriteString(write, line+"\n"); err != nil {
			t.Fatal(err)
		}
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
