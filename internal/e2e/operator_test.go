//go:build e2e

package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti/graphititest"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/proxytest"
)

// operator is a person at a shell, with the binary and a configuration in their home.
type operator struct {
	t   *testing.T
	dir string
	env []string
}

// run runs a command and returns its output, from stdout and stderr, and whether it
// succeeded.
func (o *operator) run(args ...string) (string, bool) {
	o.t.Helper()
	cmd := exec.Command(filepath.Join(o.dir, "bin", "graphiti-proxy"), args...)
	cmd.Dir, cmd.Env = o.dir, o.env
	out, err := cmd.CombinedOutput()
	o.t.Logf("$ graphiti-proxy %s\n%s", strings.Join(args, " "), out)
	return string(out), err == nil
}

// must runs a command that must succeed and print a text.
func (o *operator) must(says string, args ...string) string {
	o.t.Helper()
	out, ok := o.run(args...)
	if !ok || !strings.Contains(out, says) {
		o.t.Fatalf("graphiti-proxy %s: %v, and does not say %q", strings.Join(args, " "), ok, says)
	}
	return out
}

// until repeats a command until it prints a text.
func (o *operator) until(says string, args ...string) {
	o.t.Helper()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		cmd := exec.Command(filepath.Join(o.dir, "bin", "graphiti-proxy"), args...)
		cmd.Dir, cmd.Env = o.dir, o.env
		out, _ := cmd.CombinedOutput()
		if strings.Contains(string(out), says) {
			o.t.Logf("$ graphiti-proxy %s\n%s", strings.Join(args, " "), out)
			return
		}
		if time.Now().After(end) {
			o.t.Fatalf("graphiti-proxy %s does not come to say %q:\n%s", strings.Join(args, " "), says, out)
		}
	}
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// TestOperatorsDay takes an operator through a day: install, check the configuration,
// serve, chat, search, promote, forget, read the status while Graphiti is broken, repair
// it, drain the queue, reload, stop.
func TestOperatorsDay(t *testing.T) {
	t.Parallel()
	model, err := proxytest.Start()
	if err != nil {
		t.Fatal(err)
	}
	defer model.Close()
	g, err := graphititest.Start(graphititest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	o := &operator{t: t, dir: t.TempDir()}
	o.env = []string{"HOME=" + o.dir, "PATH=" + os.Getenv("PATH")}

	// Install: one file.
	if err := os.Mkdir(filepath.Join(o.dir, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	in, err := os.ReadFile(binary)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(o.dir, "bin", "graphiti-proxy"), in, 0o755); err != nil {
		t.Fatal(err)
	}
	o.must("graphiti-proxy", "--version")

	// A configuration, first with a mistake.
	settings := filepath.Join(o.dir, ".config", "graphiti-proxy", "config.yaml")
	if err := os.MkdirAll(filepath.Dir(settings), 0o700); err != nil {
		t.Fatal(err)
	}
	listen, admin := freePort(t), freePort(t)
	configuration := func(timeout, extra string) {
		t.Helper()
		text := fmt.Sprintf(`listen: %s
admin: {listen: %s}
upstream: {openai: %s}
identity: {owner: "github_login:octocat"}
memory: {backend: graphiti, endpoint: %s, consent: true, timeout: 1s}
recall: {timeout: %s}
ingest: {ownership: true, stall_after: 3s}
promote: {directives: true}
%s`, listen, admin, model.URL(), g.URL(), timeout, extra)
		write(t, text, settings)
	}
	configuration("fast", "")
	if out, ok := o.run("config", "check"); ok || !strings.Contains(out, "config.yaml:6: recall.timeout") || !strings.Contains(out, "400ms") {
		t.Fatalf("the mistake is not named: %s", out)
	}
	configuration("2s", "")
	o.must("", "config", "check")
	o.must("", "test-connection", "--smoke")

	// Serve.
	cmd := exec.Command(filepath.Join(o.dir, "bin", "graphiti-proxy"), "serve")
	cmd.Dir, cmd.Env = o.dir, o.env
	stderr := &lines{}
	cmd.Stderr = stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := false
	defer func() {
		if !ended {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	}()
	first := bufio.NewScanner(stdout)
	for first.Scan() && !strings.Contains(first.Text(), "inspector") {
	}
	go func() { _, _ = io.Copy(io.Discard, stdout) }()
	o.must("memory    graphiti, working", "status")

	// Chat: a fact of one conversation reaches the next.
	ask := func(text string) (saw, header string) {
		t.Helper()
		model.Forget()
		body, _ := json.Marshal(map[string]any{"model": "m", "messages": []any{user(text)}})
		resp, err := http.Post("http://"+listen+"/v1/chat/completions", "application/json", strings.NewReader(string(body)))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		_, _ = io.Copy(io.Discard, resp.Body)
		if resp.StatusCode != http.StatusOK {
			t.Fatalf("%q is answered %s", text, resp.Status)
		}
		return string(model.Requests()[0].Body), resp.Header.Get("X-Graphiti-Memory")
	}
	ask("The heliport is called Foxglove.")
	o.until("(2 verified)", "queue", "status") // the statement of ownership and the turn
	if saw, header := ask("What is the heliport called?"); !strings.Contains(saw, "Foxglove") || !strings.HasPrefix(header, "recalled;") {
		t.Fatalf("got %s\n%s, want \"Foxglove\" in it, \"recalled;\" at its beginning", header, saw)
	}

	// By hand: search, promote, ask again.
	o.must("Foxglove", "memory", "search", "What is the heliport called?")
	o.must("", "memory", "promote", "--kind", "decision", "Ferries dock at the north pier.")
	o.until("0 waiting", "queue", "status")
	o.must("belongs to github_login:octocat", "memory", "show")
	if saw, _ := ask("Where do ferries dock?"); !strings.Contains(saw, "north pier") {
		t.Fatalf("got %q, want \"north pier\" in it", saw)
	}

	// Forget, ask again.
	o.must("", "memory", "forget", "--user", "github_login:octocat", "--yes")
	if saw, header := ask("What is the heliport called now?"); strings.Contains(saw, "Foxglove") || strings.HasPrefix(header, "recalled;") {
		t.Fatalf("got %s\n%s, want no \"Foxglove\" in it, no \"recalled;\" at its beginning", header, saw)
	}
	o.until("0 waiting", "queue", "status")

	// Graphiti's worker dies silently; chats continue, and the status reports it.
	g.KillWorker()
	ask("The lighthouse keeper is Ada.")
	o.until("fix its cause, then restart Graphiti", "status")
	o.until("wait in the queue", "status")
	if out, ok := o.run("status"); ok {
		t.Fatalf("trouble is not told by the exit code: %s", out)
	}
	ask("The ferry is called Puffin.")

	// After a repair, the queue drains.
	g.Restart()
	o.until("0 waiting", "queue", "status")
	o.until("memory    graphiti, working", "status")
	if saw, _ := ask("Who is the lighthouse keeper?"); !strings.Contains(saw, "Ada") {
		t.Fatalf("got %q, want \"Ada\" in it", saw)
	}
	o.until("0 waiting", "queue", "status")

	// Reload: recall off, without a restart; a mistake changes nothing.
	configuration("2s", "log: {level: loud}\n")
	if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	stderr.until(t, "log.level")
	configuration("3s", "workspace: {ignored: [nothing]}\n")
	write(t, strings.Replace(read(t, settings), "recall: {timeout: 3s}", "recall: {timeout: 3s, enabled: false}", 1), settings)
	if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		if _, header := ask("Who is the lighthouse keeper, again?"); strings.HasPrefix(header, "off;") {
			break
		} else if time.Now().After(end) {
			t.Fatalf("recall is not off after the reload: %s\n%s", header, stderr.String())
		}
	}

	// Stop.
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	ended = true
	if err := cmd.Wait(); err != nil {
		t.Fatalf("it does not end well: %v\n%s", err, stderr.String())
	}
	if out, ok := o.run("status"); ok {
		t.Fatalf("a status of what does not run: %s", out)
	}
	for _, text := range []string{"Foxglove", "lighthouse", "north pier"} {
		if strings.Contains(stderr.String(), text) {
			t.Errorf("%q is in the log", text)
		}
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
