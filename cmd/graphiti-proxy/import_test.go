package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
)

// TestImportOfLongLines: calls are bounded by their bytes, too, and what cannot
// be sent at all is named.
func TestImportOfLongLines(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	name := filepath.Join(dir, "long.jsonl")
	var b strings.Builder
	for i := range 180 { // more than a call may have
		fmt.Fprintf(&b, "{\"role\":\"user\",\"content\":\"%d %s\"}\n", i, strings.Repeat("x", 96<<10))
	}
	if err := os.WriteFile(name, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := command(t, dir, "memory", "import", name); err != nil || out != "180 messages imported, 0 already present\n" {
		t.Errorf("%q, %v", out, err)
	}
	if err := os.WriteFile(name, []byte("{\"role\":\"user\",\"content\":\""+strings.Repeat("x", 5<<20)+"\"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := command(t, dir, "memory", "import", name); err == nil || !strings.Contains(err.Error(), "line 1 is larger") {
		t.Error(err)
	}
}

// TestImportOfAnExportAfterBlankLines: what an editor puts before it does not
// make lines of it.
func TestImportOfAnExportAfterBlankLines(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	name := filepath.Join(dir, "conversations.json")
	text := "\ufeff\n\n [{\"uuid\":\"u\",\"chat_messages\":[{\"uuid\":\"m\",\"sender\":\"human\",\"text\":\"I breed alpacas.\"}]},{\"uuid\":\"v\",\"chat_messages\":[]}]"
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := command(t, dir, "memory", "import", name); err != nil || out != "1 message imported, 0 already present\n" {
		t.Errorf("%q, %v", out, err)
	}
}

// TestImportOfAPipe, as a shell's <(…) makes one.
func TestImportOfAPipe(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	name := fmt.Sprintf("/dev/fd/%d", r.Fd())
	if _, err := os.Stat(name); err != nil {
		t.Skip("pipes have no names here")
	}
	if _, err := w.WriteString("{\"role\":\"user\",\"content\":\"I breed alpacas.\"}\n"); err != nil || w.Close() != nil {
		t.Fatal(err)
	}
	if out, err := command(t, t.TempDir(), "memory", "import", name); err != nil || out != "1 message imported, 0 already present\n" {
		t.Errorf("%q, %v", out, err)
	}
}

// TestImportHasBothSidesOfATurnInOneCall, wherever a call ends.
func TestImportHasBothSidesOfATurnInOneCall(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	name := filepath.Join(dir, "export.jsonl")
	var b strings.Builder
	lines := 0
	add := func(turn string, role graphiti.RoleType) {
		lines++
		line, err := json.Marshal(service.Record{Scope: "user", Name: graphiti.EpisodeName(turn, role), Where: "memory", Role: string(role), Text: fmt.Sprint(role, turn)})
		if err != nil {
			t.Fatal(err)
		}
		b.Write(append(line, '\n'))
	}
	for i := range 2300 {
		turn := fmt.Sprintf("%032x", i)
		add(turn, graphiti.RoleUser)
		if i > 0 { // the first was not answered: calls would end within turns
			add(turn, graphiti.RoleAssistant)
		}
	}
	if err := os.WriteFile(name, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := command(t, dir, "memory", "import", name); err != nil || out != fmt.Sprintf("%d messages imported, 0 already present\n", lines) {
		t.Errorf("%q, %v", out, err)
	}
}

// TestImportIsKilled in the middle, again and again, and is run again: then the
// memory has each line, once.
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
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(dir, "data")
	p := &process{t: t, args: []string{"memory", "import", "-", "--set", "data_dir=" + data, "--set", "admin.listen=127.0.0.1:1"}}
	for part := 3; part < 10; part++ { // tenths of the file that it is given
		cmd := p.command()
		cmd.Env = append(os.Environ(), "TEST_BINARY_RUNS=the program")
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		_, err = in.Write([]byte(text[:len(text)*part/10])) // has been read, but for what a pipe holds
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
		t.Errorf("%q, %v", out, err)
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
