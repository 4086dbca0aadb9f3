//go:build e2e

// Package e2e drives the built binary with the clients and servers that people use. TestSDKs
// compares the requests that reach the model, and the answers, with those without the proxy.
package e2e

import (
	"bufio"
	"flag"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/proxy/proxytest"
)

var binary string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "graphiti-proxy-e2e-")
	if err != nil {
		panic(err)
	}
	binary = filepath.Join(dir, "graphiti-proxy")
	build := exec.Command("go", "build", "-tags", "grpcnotrace", "-o", binary, "../../cmd/graphiti-proxy")
	if out, err := build.CombinedOutput(); err != nil {
		panic(string(out))
	}
	flag.Parse()
	// Clients spend most of their time starting and waiting, not computing.
	if err := flag.Set("test.parallel", "4"); err != nil {
		panic(err)
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// world is a model with the proxy in front of it.
type world struct {
	model *proxytest.Provider
	url   string
	admin string
	cmd   *exec.Cmd
	dir   string
	env   []string
	log   io.Writer // receives the proxy's log; if nil, os.Stderr does

	program string // path of the proxy's binary
	token   string // token of the admin side, or ""
}

var address = regexp.MustCompile(`(listening on|inspector)\s+(http://\S+)`)

// serve starts the binary like a user and reads its addresses from its banner.
func serve(t *testing.T, env ...string) *world {
	t.Helper()
	return serveWith(t, binary, env...)
}

func serveWith(t *testing.T, program string, env ...string) *world {
	t.Helper()
	model, err := proxytest.Start()
	must(t, err)
	w := &world{model: model, dir: t.TempDir(), env: env, program: program}
	w.start(t, env...)
	t.Cleanup(func() { w.stop(t); model.Close() })
	return w
}

func (w *world) start(t *testing.T, env ...string) {
	t.Helper()
	w.cmd = exec.Command(w.program, "serve", "--set", "listen=127.0.0.1:0", "--set", "admin.listen=127.0.0.1:0")
	w.cmd.Dir = w.dir
	w.cmd.Env = append(append(os.Environ(), "HOME="+w.dir, "XDG_CONFIG_HOME=", "XDG_DATA_HOME=",
		"GRAPHITI_PROXY_UPSTREAM_OPENAI="+w.model.URL(), "GRAPHITI_PROXY_UPSTREAM_ANTHROPIC="+w.model.URL(), "GRAPHITI_PROXY_UPSTREAM_GEMINI="+w.model.URL(), "GRAPHITI_PROXY_RECALL_TIMEOUT=5s"), env...)
	w.cmd.Stderr = os.Stderr
	if w.log != nil {
		w.cmd.Stderr = w.log
	}
	out, err := w.cmd.StdoutPipe()
	must(t, err)
	must(t, w.cmd.Start())
	w.url, w.admin = "", ""
	for s := bufio.NewScanner(out); w.admin == "" && s.Scan(); {
		if m := address.FindStringSubmatch(s.Text()); m != nil {
			if m[1] == "inspector" {
				w.admin = m[2]
			} else {
				w.url = m[2]
			}
		}
	}
	if w.url == "" || w.admin == "" {
		t.Fatal("the banner names no addresses")
	}
	for _, v := range env {
		if token, ok := strings.CutPrefix(v, "GRAPHITI_PROXY_ADMIN_TOKEN="); ok {
			w.token = token
		}
	}
	go func() { _, _ = bufio.NewReader(out).WriteTo(discard{}) }()
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

// stop ends the proxy with SIGTERM, like an operator.
func (w *world) stop(t *testing.T) {
	t.Helper()
	if w.cmd.ProcessState != nil {
		return
	}
	_ = w.cmd.Process.Signal(syscall.SIGTERM)
	if err := w.cmd.Wait(); err != nil {
		t.Errorf("serve ended with %v", err)
	}
}

func user(text any) map[string]any { return map[string]any{"role": "user", "content": text} }

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	return l.Addr().String()
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	must(t, err)
	return string(b)
}
