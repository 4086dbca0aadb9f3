//go:build unix

package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/config"
)

// newcomer is a user with a fresh home who follows the README.
type newcomer struct {
	t    *testing.T
	home string
	env  []string
	url  string // of the proxy that serve has started
	stop func() // ends the proxy
}

// newNewcomer returns a newcomer with a stand-in model, addresses for the proxy, and
// graphiti-proxy, a client and a go command in PATH.
func newNewcomer(t *testing.T) *newcomer {
	t.Helper()
	model := startModel(t)
	n := &newcomer{t: t, home: t.TempDir(), stop: func() {}}
	self, err := filepath.Abs(os.Args[0])
	must(t, err)
	bin := filepath.Join(n.home, "bin")
	must(t, os.Mkdir(bin, 0o700))
	addresses := make([]string, 2)
	for i := range addresses {
		// Other tests bind free ports of 127.0.0.1. They must get neither the ports that
		// the proxy will bind nor the requests that wait for it.
		l, err := net.Listen("tcp", "127.0.0.2:0")
		if err != nil { // not every system has this address
			l, err = net.Listen("tcp", "127.0.0.1:0")
		}
		must(t, err)
		defer l.Close()
		addresses[i] = l.Addr().String()
	}
	n.url = "http://" + addresses[0]
	for name, script := range map[string]string{
		"graphiti-proxy": "TEST_BINARY_RUNS='the program' exec '" + self + "' \"$@\"\n",
		"claude":         "exec curl -s -A claude-cli/2 -H 'x-api-key: sk-mine' -H 'anthropic-version: 2023-06-01' -H 'content-type: application/json' -d '{\"model\":\"m\",\"max_tokens\":9,\"system\":\"# Environment\\n - Primary working directory: '\"$PWD\"'\\n\",\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]}' " + n.url + "/v1/messages\n",
		"go":             "case \"$*\" in 'install ./cmd/graphiti-proxy') exit;; 'run ./cmd/graphiti-proxy '*) shift 2; exec graphiti-proxy \"$@\";; esac; exit 64\n",
	} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+script), 0o700); err != nil { //nolint:gosec // a program
			t.Fatal(err)
		}
	}
	n.env = []string{
		"HOME=" + n.home, "PATH=" + bin + ":" + os.Getenv("PATH"), "OPENAI_API_KEY=sk-mine",
		"GRAPHITI_PROXY_LISTEN=" + addresses[0], "GRAPHITI_PROXY_ADMIN_LISTEN=" + addresses[1], "GRAPHITI_PROXY_UPSTREAM_OPENAI=" + model.URL(), "GRAPHITI_PROXY_UPSTREAM_ANTHROPIC=" + model.URL(),
	}
	return n
}

func (n *newcomer) command(line string) *exec.Cmd {
	cmd := exec.Command("sh", "-c", strings.ReplaceAll(line, "http://127.0.0.1:8787", n.url))
	cmd.Dir, cmd.Env = n.home, n.env
	return cmd
}

// serve starts the proxy, instead of a running one, and waits until it answers.
func (n *newcomer) serve(line string) {
	n.t.Helper()
	cmd := n.command("exec " + line)
	n.stop()
	must(n.t, cmd.Start())
	n.stop = sync.OnceFunc(func() { _ = cmd.Process.Signal(syscall.SIGTERM); _ = cmd.Wait() })
	waitUntil(n.t, line, func() bool {
		resp, err := http.Get(n.url + "/v1/models")
		if err == nil {
			resp.Body.Close()
		}
		return err == nil
	})
}

// sees maps the beginnings of commands to a required part of their output.
var sees = map[string]string{
	"go run ./cmd/graphiti-proxy demo":                      "The memory arrived.",
	"curl":                                                  `"content"`,
	"graphiti-proxy connect":                                "forwarded its request (status 200)",
	"graphiti-proxy status":                                 "running for",
	"graphiti-proxy memory show":                            "Miso",
	"graphiti-proxy memory list":                            "Miso",
	"graphiti-proxy memory search":                          "Miso",
	"graphiti-proxy memory export --user me > memory.jsonl": "",
	"graphiti-proxy memory import memory.jsonl":             "already",
	"graphiti-proxy memory forget --yes":                    "1 group forgotten",
	"graphiti-proxy config check":                           "the configuration is valid",
	"go test ./...":                                         "",
	"go install ./cmd/graphiti-proxy":                       "",
	"graphiti-proxy serve":                                  "",
}

// TestReadme runs each command of the README in a fresh home and checks its output.
func TestReadme(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("the README uses curl: ", err)
	}
	b, err := os.ReadFile("../../README.md")
	must(t, err)
	readme := string(b)
	if words := len(strings.Fields(readme)); words > 900 {
		t.Errorf("it has %d words; 900 are the most", words)
	}
	n := newNewcomer(t)
	defer func() { n.stop() }()
	done := make(map[string]bool)
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(readme, -1) {
		for line := range strings.Lines(block[1]) {
			line, _, _ = strings.Cut(strings.TrimSpace(line), "  #")
			line = strings.TrimSpace(line)
			known := ""
			for begin := range sees {
				if strings.HasPrefix(line, begin) && len(begin) > len(known) {
					known = begin
				}
			}
			if known == "" {
				t.Errorf("nobody has tried %q", line)
				continue
			}
			done[known] = true
			n.does(line, sees[known])
		}
	}
	for begin := range sees {
		if !done[begin] {
			t.Errorf("%q is not in the README any more", begin)
		}
	}
	n.settings(regexp.MustCompile("(?s)```yaml\n(.*?)```").FindStringSubmatch(readme)[1])
}

// does runs a line of the README, which must succeed and print says.
func (n *newcomer) does(line, says string) {
	n.t.Helper()
	switch {
	case line == "go test ./...":
		// .ci/run runs this line, with more flags.
		runs := func(l string) bool { return strings.HasPrefix(l, "go test ") && strings.HasSuffix(l, " ./...") }
		if b, err := os.ReadFile("../../.ci/run"); err != nil || !slices.ContainsFunc(strings.Split(string(b), "\n"), runs) {
			n.t.Errorf(".ci/run does not run %s: %v", line, err)
		}
	case strings.HasSuffix(line, " serve"):
		n.serve(line)
	default:
		var out []byte
		var err error
		waitUntil(n.t, fmt.Sprintf("%q in what %q says", says, line), func() bool {
			out, err = n.command(line).CombinedOutput()
			return err != nil || strings.Contains(string(out), says)
		})
		n.t.Logf("$ %s\n%s", line, out)
		if err != nil {
			n.t.Errorf("%s: %v", line, err)
		}
	}
}

// settings checks that the configuration in the README is valid and has at most ten lines.
func (n *newcomer) settings(text string) {
	n.t.Helper()
	file := filepath.Join(n.home, "graphiti-proxy.yaml")
	must(n.t, os.WriteFile(file, []byte(text), 0o600))
	if _, err := config.Load(config.Sources{File: file, Env: []string{"HOME=" + n.home}}); err != nil {
		n.t.Error(err)
	}
	if lines := strings.Count(text, "\n"); lines > 10 {
		n.t.Errorf("it says ten lines, and there are %d", lines)
	}
}
