package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// model is a provider that stores the body of the last request, and answers with the result
// of answer.
type model struct {
	url    string
	server *http.Server

	mu     sync.Mutex // protects the fields below
	body   []byte
	answer func(body []byte) string // the message, as JSON
}

func startModel(answer func([]byte) string) (*model, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	m := &model{url: "http://" + ln.Addr().String(), answer: answer}
	m.server = &http.Server{Handler: http.HandlerFunc(m.serve)} //nolint:gosec // our own clients only
	// Ends when the server is closed.
	go func() { _ = m.server.Serve(ln) }()
	return m, nil
}

func (m *model) serve(w http.ResponseWriter, r *http.Request) {
	b, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	m.mu.Lock()
	m.body = b
	message := m.answer(b)
	m.mu.Unlock()
	finish := "stop"
	if strings.Contains(message, `"tool_calls"`) {
		finish = "tool_calls"
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"finish_reason":%q,"message":%s}]}`, finish, message)
}

func (m *model) last() []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.body
}

// proxyRun is a running proxy with its own files.
type proxyRun struct {
	dir, binary, url, admin string
	env                     []string
	cmd                     *exec.Cmd
}

// buildProxy builds the binary that users run.
func buildProxy(dir string) (string, error) {
	binary := filepath.Join(dir, "graphiti-proxy")
	if out, err := exec.Command("go", "build", "-tags", "grpcnotrace", "-o", binary, "./cmd/graphiti-proxy").CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the proxy (run from the module's root): %w\n%s", err, out)
	}
	return binary, nil
}

func newProxyRun(binary, dir, upstream string, env ...string) *proxyRun {
	p := &proxyRun{dir: dir, binary: binary}
	listen, admin := freeAddress(), freeAddress()
	p.url, p.admin = "http://"+listen, "http://"+admin
	p.env = append([]string{
		"GRAPHITI_PROXY_LISTEN=" + listen, "GRAPHITI_PROXY_ADMIN_LISTEN=" + admin, "GRAPHITI_PROXY_UPSTREAM_OPENAI=" + upstream,
		"GRAPHITI_PROXY_DATA_DIR=" + dir, "GRAPHITI_PROXY_LOG_LEVEL=warn",
	}, env...)
	return p
}

// command runs one of the proxy's commands.
func (p *proxyRun) command(args ...string) error {
	cmd := exec.Command(p.binary, args...)
	cmd.Env = append(os.Environ(), p.env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("graphiti-proxy %s: %w\n%s", args[0], err, out)
	}
	return nil
}

func (p *proxyRun) start() error {
	ps := &processes{}
	_, err := ps.start(strings.TrimPrefix(p.url, "http://"), p.env, p.binary, "serve")
	if len(ps.cmds) > 0 {
		p.cmd = ps.cmds[0]
	}
	return err
}

func (p *proxyRun) stop() {
	if p.cmd != nil {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
		p.cmd = nil
	}
}

// chat sends messages unchanged, and returns the model's message and the memory header.
func chat(url string, messages []json.RawMessage) (message json.RawMessage, header string, err error) {
	body, err := json.Marshal(map[string]any{"model": "m", "messages": messages})
	if err != nil {
		return nil, "", err
	}
	resp, err := http.Post(url+"/v1/chat/completions", "application/json", strings.NewReader(string(body)))
	if err != nil {
		return nil, "", err
	}
	defer resp.Body.Close()
	var answer struct {
		Choices []struct{ Message json.RawMessage }
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil || len(answer.Choices) == 0 {
		return nil, "", errors.Join(err, fmt.Errorf("answered %s", resp.Status))
	}
	return answer.Choices[0].Message, resp.Header.Get("X-Graphiti-Memory"), nil
}

func message(role, text string) json.RawMessage {
	b, _ := json.Marshal(map[string]string{"role": role, "content": text}) // strings only
	return b
}

// remembering starts a proxy in a folder, with the texts in some columns of a list as its
// memory. Each text is a conversation of its own, and each column is weeks later than the
// previous one.
func remembering(dir, binary string, m *model, env []string, list [][]string, columns ...int) (*proxyRun, error) {
	var lines bytes.Buffer
	enc := json.NewEncoder(&lines)
	began := time.Date(2024, 1, 8, 9, 0, 0, 0, time.UTC)
	for _, n := range columns {
		for i, l := range list {
			err := enc.Encode(map[string]string{
				"scope": "user", "role": "user", "content": l[n],
				"timestamp": began.Add(time.Duration(n*len(list)+i) * 7 * time.Hour).Format(time.RFC3339), "session": fmt.Sprint("said", n, "-", i),
			})
			if err != nil {
				return nil, err
			}
		}
	}
	from := dir + ".jsonl"
	if err := os.WriteFile(from, lines.Bytes(), 0o600); err != nil {
		return nil, err
	}
	p := newProxyRun(binary, dir, m.url, append(slices.Clone(env), "GRAPHITI_PROXY_INGEST_ENABLED=false", "GRAPHITI_PROXY_RECALL_TIMEOUT=5s")...)
	if err := errors.Join(p.command("memory", "import", from), p.start()); err != nil {
		p.stop()
		return nil, err
	}
	return p, nil
}
