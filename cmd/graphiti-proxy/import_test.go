package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
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
		must(t, err)
		must(t, cmd.Start())
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
	must(t, err)
	times := make(map[string]int)
	for line := range strings.Lines(exported) {
		var r service.Record
		must(t, json.Unmarshal([]byte(line), &r))
		times[r.Text]++
	}
	for i := range lines {
		if n := times[fmt.Sprintf("line %d is about alpacas", i)]; n != 1 || len(times) != lines {
			t.Fatalf("line %d is there %d times, and %d lines in all", i, n, len(times))
		}
	}
}

// answers starts an upstream that numbers its answers and has ids as long as a provider's,
// and returns its URL.
func answers(t *testing.T) string {
	t.Helper()
	n := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n++
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"id":"chatcmpl-%024d","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"Noted, answer %d."},"finish_reason":"stop"}]}`, n, n)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// pastTurn is a turn of a transcript.
type pastTurn struct{ id, at, words, answer string }

// qwenTranscript writes a session of Qwen Code into a home directory.
func qwenTranscript(t *testing.T, home, dir string, turns ...pastTurn) {
	t.Helper()
	var b strings.Builder
	for i, turn := range turns {
		line := func(fields m) {
			all := m{"sessionId": "30206c6f", "timestamp": turn.at, "cwd": dir}
			for k, v := range fields {
				all[k] = v
			}
			text, err := json.Marshal(all)
			must(t, err)
			b.Write(append(text, '\n'))
		}
		parts := func(text string) m { return m{"parts": []m{{"text": text}}} }
		line(m{"uuid": fmt.Sprint("u", i, turn.words), "type": "user", "provenance": "real_user", "message": parts(turn.words)})
		line(m{"uuid": fmt.Sprint("t", i), "type": "system", "provenance": "system", "subtype": "ui_telemetry", "systemPayload": m{"uiEvent": m{"response_id": turn.id}}})
		line(m{"uuid": fmt.Sprint("a", i), "type": "assistant", "provenance": "assistant_output", "message": parts(turn.answer)})
	}
	file := filepath.Join(home, ".qwen", "projects", "p", "chats", "30206c6f.jsonl")
	must(t, os.MkdirAll(filepath.Dir(file), 0o700))
	writeFile(t, file, b.String())
}

const qwenAgent = "QwenCode/0.15.10 (linux; x64)"

func TestImportAgents(t *testing.T) {
	t.Parallel()
	home, dir, data := t.TempDir(), project(t), t.TempDir()
	settings := map[string]string{"identity.owner": "user:josh", "upstream.openai": answers(t)}
	set := []string{"--set", "data_dir=" + data, "--set", "identity.owner=user:josh"}
	run := func(args ...string) string {
		t.Helper()
		out, errOut, err := commandIn(t, home, home, append(args, set...)...)
		if err != nil {
			t.Fatalf("%q: %v, %s", args, err, errOut)
		}
		return out
	}
	const marlin = "The production database is called Marlin."
	w := start(t, data, settings)
	w.exchange("/v1/chat/completions", qwen(dir, user("Our staging database is called Bluefin.")), "User-Agent", qwenAgent)
	w.exchange("/v1/chat/completions", qwen(dir, user("The secret database is called Perch.")), "User-Agent", qwenAgent, "X-Graphiti-Memory", "off")
	w.exchange("/v1/chat/completions", qwen(dir, user("Forget that the lamp is red.")), "User-Agent", qwenAgent)
	w.delivered(1)
	w.stop()
	qwenTranscript(t, home, dir,
		pastTurn{"chatcmpl-marlin-marlin-marlin", "2026-11-20T08:00:00Z", marlin, "Noted, Marlin."},
		pastTurn{"chatcmpl-tabs-tabs-tabs-tabs", "2026-11-20T08:01:00Z", "Remember that: always use tabs.", "Understood."},
		pastTurn{fmt.Sprintf("chatcmpl-%024d", 1), "2026-11-21T08:00:00Z", "“Our staging database is called Bluefin.”", "Noted, answer 1."}, // other text, same id
		pastTurn{fmt.Sprintf("chatcmpl-%024d", 2), "2026-11-21T08:01:00Z", "The secret database is called Perch.", "Noted, answer 2."},
		pastTurn{"chatcmpl-lamp-lamp-lamp-lamp", "2026-11-21T08:02:00Z", "Forget that the lamp is red.", "Noted, answer 3."},
	)
	qwenTranscript(t, filepath.Join(home, "hostile"), dir, pastTurn{"", "2026-11-20T08:00:00Z", "It is Orca.", "Noted."})
	hostile, err := os.ReadFile(filepath.Join(home, "hostile", ".qwen", "projects", "p", "chats", "30206c6f.jsonl"))
	if err == nil {
		hostile = []byte(strings.ReplaceAll(string(hostile), "30206c6f", strings.Repeat("x", 5000)))
		err = os.WriteFile(filepath.Join(home, ".qwen", "projects", "p", "chats", "hostile.jsonl"), append(hostile, "{\x00]"...), 0o600)
	}
	must(t, err)
	if out := run("memory", "import", "--agents"); !strings.Contains(out, "2 new turns; this imports them") {
		t.Errorf("dry run: got %q, want 2 of 6 turns", out)
	}
	if out := run("memory", "export", "--user", "me"); strings.Contains(out, "Marlin") {
		t.Errorf("the dry run stored %q", out)
	}
	imported := run("memory", "import", "--agents", "--yes")
	name := regexp.MustCompile(`import-[\d-]+`).FindString(imported)
	if !strings.Contains(imported, "2 turns imported, 3 known") || !strings.Contains(imported, "1 turn left out") {
		t.Errorf("got %q, want the live turns recognized, and the hostile one left out", imported)
	}
	if out := run("memory", "import", "--agents", "--yes"); !strings.Contains(out, "0 turns imported, 5 known") {
		t.Errorf("a second time: got %q", out)
	}
	if out := run("memory", "import", "--agents"); !strings.Contains(out, "0 new turns") {
		t.Errorf("dry run after the import: got %q, want no new turn", out)
	}
	if out := run("memory", "export", "--user", "me"); !strings.Contains(out, "Marlin") || strings.Contains(out, "kind=") {
		t.Errorf("got %q, want Marlin, and no standing text", out)
	}

	// The conversation continues through the proxy, which stores no turn twice.
	w = start(t, data, settings)
	_, header := w.exchange("/v1/chat/completions", qwen(dir, user(marlin), replied("Noted, Marlin."), user("Remember that: always use tabs."), replied("Understood."), user("And how many replicas has it?")), "User-Agent", qwenAgent)
	w.delivered(4)
	if kept := w.keptFor(dir); strings.Count(kept, marlin) != 1 {
		t.Errorf("got %q, want Marlin once, header %v", kept, header)
	}
	_, header = w.exchange("/v1/chat/completions", qwen(dir, user("What is the production database called?")), "User-Agent", qwenAgent)
	if got := header.Get("X-Graphiti-Memory"); !strings.HasPrefix(got, "recalled") {
		t.Errorf("got %q for a question about the transcript, want a block", got)
	}
	w.stop()

	if out := run("memory", "forget", "--import", name, "--yes"); !strings.HasPrefix(out, "the import is forgotten in ") {
		t.Errorf("forget --import: got %q, want it to name the import", out)
	}
	if out := run("memory", "export", "--user", "me"); strings.Contains(out, marlin) || !strings.Contains(out, "Bluefin") {
		t.Errorf("after forget --import got %q, want Bluefin without Marlin", out)
	}
	if out := run("memory", "import", "--agents", "--yes"); !strings.Contains(out, "0 turns imported") {
		t.Errorf("after forget --import: got %q, want no turn again", out)
	}
}

func TestImportAgents_LeavesOut(t *testing.T) {
	t.Parallel()
	ignored := project(t)
	writeFile(t, filepath.Join(ignored, ".graphiti-proxy-ignore"), "")
	for dir, want := range map[string]string{ignored: "excluded from memory", filepath.Join(ignored, "gone"): "is gone", "": "is unknown"} {
		home := t.TempDir()
		qwenTranscript(t, home, dir, pastTurn{"chatcmpl-marlin-marlin-marlin", "2026-11-20T08:00:00Z", "It is Marlin.", "Noted."})
		out, errOut, err := commandIn(t, home, home, "memory", "import", "--agents", "--yes", "--set", "data_dir="+t.TempDir())
		if err != nil || !strings.Contains(out, want) || !strings.Contains(out, "0 turns imported") {
			t.Errorf("%q: got %q, %s, %v; want the reason %q", dir, out, errOut, err, want)
		}
	}
}

func TestImportAgents_Aider(t *testing.T) {
	t.Parallel()
	home, dir, data := t.TempDir(), project(t), t.TempDir()
	settings := map[string]string{"identity.owner": "user:josh", "upstream.openai": answers(t)}
	w := start(t, data, settings)
	const heron = "The mascot is a heron."
	w.exchange("/v1/chat/completions", chat(user(heron)))
	w.delivered(1)
	w.stop()
	history := "# aider chat started at 2026-11-20 08:00:00\n\n#### " + heron + "  \n\nNoted, answer 1.\n\n#### The queue is called Kestrel.  \n\nNoted, too.\n"
	writeFile(t, filepath.Join(dir, ".aider.chat.history.md"), history)
	set := []string{"--set", "data_dir=" + data, "--set", "identity.owner=user:josh"}
	out, errOut, err := commandIn(t, home, dir, append([]string{"memory", "import", "--agents", "--yes"}, set...)...)
	if err != nil || !strings.Contains(out, "2 turns imported") || !strings.Contains(out, ".aider.chat.history.md") {
		t.Errorf("got %q, %s, %v; want two turns of a named file", out, errOut, err)
	}
	out, errOut, err = commandIn(t, home, dir, append([]string{"memory", "export", "--user", "user:josh"}, set...)...)
	for line := range strings.Lines(out) {
		if err != nil || strings.Contains(line, "Kestrel") && !strings.Contains(line, `"scope":"workspace"`) {
			t.Errorf("got %q, %s, %v; want the file's turns in its project", line, errOut, err)
		}
	}
}
