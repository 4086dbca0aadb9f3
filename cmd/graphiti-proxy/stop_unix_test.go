//go:build unix

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/internal/helptest"
)

// TestStopDuringTheStart checks that the process stops even if its start waits for a file.
func TestStopDuringTheStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	pipe := filepath.Join(dir, "people") // a read blocks until a writer opens it
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Skip(err)
	}
	cmd := exec.Command(os.Args[0], "serve", "--set", "listen=127.0.0.1:0", "--set", "admin.listen=127.0.0.1:0", "--set", "data_dir="+dir, "--set", "identity.users_file="+pipe)
	cmd.Env = append(os.Environ(), "TEST_BINARY_RUNS=the program")
	var said bytes.Buffer
	cmd.Stderr = &said
	must(t, cmd.Start())
	// The process takes the lock shortly before it opens the pipe.
	waitUntil(t, "the lock", func() bool { _, err := os.Stat(filepath.Join(dir, "lock")); return err == nil })
	_ = cmd.Process.Signal(syscall.SIGTERM)
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	select {
	case err := <-done:
		if err == nil || !strings.Contains(err.Error(), "terminated") {
			t.Errorf("got %v, %s; want the end by the signal", err, said.String())
		}
	case <-time.After(helptest.Patience):
		_ = cmd.Process.Kill()
		t.Error("it goes on")
	}
}
