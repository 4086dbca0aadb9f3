package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
)

// TestImportIsKilled checks that the memory holds each line exactly once after an import
// that was killed several times and then repeated.
func TestImportIsKilled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	name := filepath.Join(dir, "lines.jsonl")
	const lines = 14000
	var b strings.Builder
	for i := range lines {
		fmt.Fprintf(&b, "{\"role\":\"user\",\"content\":\"line %d is about alpacas\",\"timestamp\":\"2026-01-02T03:04:05Z\"}\n", i)
	}
	text := b.String()
	writeFile(t, name, text)
	data := filepath.Join(dir, "data")
	p := &process{t: t, args: []string{"memory", "import", "-", "--set", "data_dir=" + data, "--set", "admin.listen=127.0.0.1:1"}}
	for part := 3; part < 10; part++ { // tenths of the file to send before the kill
		cmd := p.command()
		cmd.Env = append(os.Environ(), "TEST_BINARY_RUNS=the program")
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		_, err = in.Write([]byte(text[:len(text)*part/10])) // returns once all but a pipe's buffer has been read
		if err != nil {
			t.Error(err)
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	set := []string{"--set", "data_dir=" + data}
	out, err := command(t, dir, append([]string{"memory", "import", name}, set...)...)
	var kept, known int
	if _, scan := fmt.Sscanf(out, "%d messages imported, %d already present", &kept, &known); err != nil || scan != nil || kept+known != lines {
		t.Errorf("got %q, %v, want no error, and %d messages", out, err, lines)
	}
	if known == 0 {
		t.Error("nothing was imported before a kill: this tests nothing")
	}
	exported, err := command(t, dir, append([]string{"memory", "export"}, set...)...)
	if err != nil {
		t.Fatal(err)
	}
	times := make(map[string]int)
	for line := range strings.Lines(exported) {
		var r service.Record
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		times[r.Text]++
	}
	for i := range lines {
		if n := times[fmt.Sprintf("line %d is about alpacas", i)]; n != 1 || len(times) != lines {
			t.Fatalf("line %d is there %d times, and %d lines in all", i, n, len(times))
		}
	}
}
