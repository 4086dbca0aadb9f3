//go:build e2e

// Package e2e drives the built binary with the clients that people use. Each test checks
// both the requests that reach the model and the answers that reach the client, and
// compares them with those of the same client without the proxy.
package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

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

// scenario is a client's input.
type scenario struct {
	BaseURL    string            `json:"base_url"`
	Headers    map[string]string `json:"headers,omitempty"`
	Stream     bool              `json:"stream"`
	Request    map[string]any    `json:"request"`
	AbortAfter int               `json:"abort_after,omitempty"`
}

// result is a client's output.
type result struct {
	Text, Tool, Finish, Error, Memory string
	Status                            int
}

// clients maps each client library to a function that runs a scenario with it.
var clients = map[string]func(*testing.T, scenario) result{
	"openai-go":   goClient,
	"npm openai":  script("node", "driver.mjs", ".cache/node", ".cache/node/node_modules/openai"),
	"PyPI openai": script("python3", "../../python/driver.py", ".cache/python", ".cache/python/openai"),
}

// script returns a function that runs a client in another language. It skips the test if
// the client is not installed.
func script(command, file, dir, needs string) func(*testing.T, scenario) result {
	return func(t *testing.T, s scenario) (r result) {
		t.Helper()
		if _, err := os.Stat(needs); err != nil {
			t.Skipf("SKIPPED LOUDLY: %s is not installed; run internal/e2e/install.sh where its registry is reached", needs)
		}
		in, _ := json.Marshal(s)
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, command, file)
		cmd.Dir, cmd.Stdin, cmd.Stderr = dir, bytes.NewReader(in), os.Stderr
		cmd.Env = append(os.Environ(), "PYTHONPATH=.")
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s: %v", command, err)
		}
		if err := json.Unmarshal(out, &r); err != nil {
			t.Fatalf("%s printed %q", command, out)
		}
		return r
	}
}

// goClient sends the scenario with openai-go.
func goClient(t *testing.T, s scenario) (r result) {
	t.Helper()
	opts := []option.RequestOption{option.WithBaseURL(s.BaseURL), option.WithAPIKey("sk-test"), option.WithMaxRetries(0)}
	for k, v := range s.Headers {
		opts = append(opts, option.WithHeader(k, v))
	}
	var resp *http.Response
	opts = append(opts, option.WithResponseInto(&resp))
	c := openai.NewClient(opts...)
	var params openai.ChatCompletionNewParams
	b, _ := json.Marshal(s.Request)
	if err := json.Unmarshal(b, &params); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	fail := func(err error) {
		r.Error = "error"
		var e *openai.Error
		if asError(err, &e) {
			r.Status = e.StatusCode
		}
	}
	if !s.Stream {
		got, err := c.Chat.Completions.New(ctx, params)
		if err != nil {
			fail(err)
			return r
		}
		r.Text, r.Finish = got.Choices[0].Message.Content, string(got.Choices[0].FinishReason)
		if calls := got.Choices[0].Message.ToolCalls; len(calls) > 0 {
			r.Tool = calls[0].Function.Name
		}
	} else {
		stream := c.Chat.Completions.NewStreaming(ctx, params)
		defer stream.Close()
		for n := 1; stream.Next(); n++ {
			chunk := stream.Current()
			if len(chunk.Choices) > 0 {
				d := chunk.Choices[0]
				r.Text += d.Delta.Content
				if len(d.Delta.ToolCalls) > 0 {
					r.Tool += d.Delta.ToolCalls[0].Function.Name
				}
				if d.FinishReason != "" {
					r.Finish = string(d.FinishReason)
				}
			}
			if n == s.AbortAfter {
				cancel()
			}
		}
		if err := stream.Err(); err != nil {
			fail(err)
		}
	}
	if resp != nil {
		r.Memory = resp.Header.Get("X-Graphiti-Memory")
	}
	return r
}

func asError(err error, target **openai.Error) bool {
	for err != nil {
		if e, ok := err.(*openai.Error); ok {
			*target = e
			return true
		}
		u, ok := err.(interface{ Unwrap() error })
		if !ok {
			return false
		}
		err = u.Unwrap()
	}
	return false
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
	if err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
	if err := w.cmd.Start(); err != nil {
		t.Fatal(err)
	}
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

func ask(stream bool, messages ...any) scenario {
	return scenario{Stream: stream, Request: map[string]any{"model": "stand-in", "messages": messages}}
}

// say runs a scenario without and with the proxy, and checks that the model's two requests
// differ by the block only. It returns the client's result and the body that reached the
// model.
func (w *world) say(t *testing.T, run func(*testing.T, scenario) result, s scenario) (result, string) {
	t.Helper()
	w.model.Forget()
	s.BaseURL = w.model.URL() + "/v1"
	run(t, s)
	s.BaseURL = w.url + "/v1"
	got := run(t, s)
	requests := w.model.Requests()
	if len(requests) != 2 {
		t.Fatalf("the model got %d requests", len(requests))
	}
	direct, proxied := requests[0], requests[1]
	if direct.Refused == "" && proxied.Refused != "" {
		t.Errorf("the model refused what the proxy sent: %s", proxied.Refused)
	}
	if diff := cmp.Diff(string(direct.Body), withoutBlocks(string(proxied.Body))); diff != "" {
		t.Errorf("the body differs by more than the block (-direct +proxied):\n%s", diff)
	}
	if diff := cmp.Diff(comparable(direct.Headers), comparable(proxied.Headers)); diff != "" {
		t.Errorf("headers (-direct +proxied):\n%s", diff)
	}
	return got, string(proxied.Body)
}

var (
	partBlock   = regexp.MustCompile(`\{"type":"text","text":"<graphiti_memory>.*?</graphiti_memory>\\n\\n"\},`)
	stringBlock = regexp.MustCompile(`<graphiti_memory>.*?</graphiti_memory>\\n\\n`)
)

func withoutBlocks(body string) string {
	return stringBlock.ReplaceAllString(partBlock.ReplaceAllString(body, ""), "")
}

// comparable returns the headers that two equal requests share.
func comparable(h http.Header) http.Header {
	h = h.Clone()
	for _, name := range []string{"Content-Length", "Connection", "X-Graphiti-Session", "X-Stainless-Retry-Count", "Idempotency-Key"} {
		h.Del(name)
	}
	return h
}

func each(t *testing.T, f func(*testing.T, func(*testing.T, scenario) result, bool)) {
	for name, run := range clients {
		for _, stream := range []bool{false, true} {
			t.Run(name+map[bool]string{true: ", streamed", false: ""}[stream], func(t *testing.T) { t.Parallel(); f(t, run, stream) })
		}
	}
}

// remembered waits until the previous turn is stored, then runs a scenario.
func remembered(t *testing.T, w *world, run func(*testing.T, scenario) result, s scenario) (result, string) {
	t.Helper()
	w.until(t, "the turn", func(q queue) bool { return q.Delivered > 0 && q.Pending == 0 })
	return w.say(t, run, s)
}

func TestRecallInNextConversation(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, run func(*testing.T, scenario) result, stream bool) {
		w := serve(t)
		got, _ := w.say(t, run, ask(stream, user("My cat is called Miso.")))
		if got.Finish != "stop" || got.Error != "" || got.Text == "" || !strings.HasPrefix(got.Memory, "empty; facts=0;") {
			t.Errorf("first conversation: %+v", got)
		}
		got, body := remembered(t, w, run, ask(stream, map[string]any{"role": "system", "content": "Be brief."}, user("What is my cat called?")))
		if !strings.Contains(got.Text, "Miso") || !strings.HasPrefix(got.Memory, "recalled; facts=1;") || !strings.HasSuffix(got.Memory, "source=live") {
			t.Errorf("second conversation: %+v", got)
		}
		if !regexp.MustCompile(`"<graphiti_memory>\\n[^<]*\\n- user, [0-9-]+: “My cat is called Miso.”\\n</graphiti_memory>\\n\\nWhat is my cat called\?"`).MatchString(body) {
			t.Errorf("the model saw %s", body)
		}
	})
}

func TestBlockReplay(t *testing.T) {
	t.Parallel()
	tools := []any{map[string]any{"type": "function", "function": map[string]any{"name": "lookup", "parameters": map[string]any{"type": "object"}}}}
	each(t, func(t *testing.T, run func(*testing.T, scenario) result, stream bool) {
		w := serve(t)
		w.say(t, run, ask(stream, user("My cat is called Miso.")))
		question := user(`What is my cat called? [[tool lookup {"name":"x"}]]`)
		s := ask(stream, question)
		s.Request["tools"] = tools
		got, body := remembered(t, w, run, s)
		if got.Tool != "lookup" || got.Finish != "tool_calls" {
			t.Fatalf("first round: %+v", got)
		}
		block := stringBlock.FindString(body)
		if block == "" {
			t.Fatalf("no block: %s", body)
		}
		call := map[string]any{"role": "assistant", "content": nil, "tool_calls": []any{
			map[string]any{"id": "call_1", "type": "function", "function": map[string]any{"name": "lookup", "arguments": `{"name":"x"}`}}}}
		result := map[string]any{"role": "tool", "tool_call_id": "call_1", "content": "nothing"}
		s = ask(stream, question, call, result)
		s.Request["tools"] = tools
		got, body = w.say(t, run, s)
		if !strings.Contains(got.Text, "Miso") || strings.Count(body, block) != 1 || !strings.HasSuffix(got.Memory, "source=sticky") {
			t.Errorf("second round: %+v\n%s", got, body)
		}
		w.until(t, "the second turn", func(q queue) bool { return q.Delivered == 2 })
		s = ask(stream, question, call, result, map[string]any{"role": "assistant", "content": got.Text}, user("Thank you."))
		s.Request["tools"] = tools
		if _, body = w.say(t, run, s); strings.Count(body, block) != 1 {
			t.Errorf("next turn: %s", body)
		}
		// A restart of the proxy makes no difference.
		w.stop(t)
		w.start(t)
		if _, again := w.say(t, run, s); again != body {
			t.Errorf("after a restart:\n got %s\nwant %s", again, body)
		}
	})
}

func TestBlockBeforeParts(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, run func(*testing.T, scenario) result, stream bool) {
		w := serve(t)
		w.say(t, run, ask(stream, user("My cat is called Miso.")))
		parts := []any{
			map[string]any{"type": "image_url", "image_url": map[string]any{"url": "data:image/png;base64,iVBORw0KGgo="}},
			map[string]any{"type": "text", "text": "What is my cat called?"},
		}
		got, body := remembered(t, w, run, ask(stream, user(parts)))
		if !strings.Contains(got.Text, "Miso") || !partBlock.MatchString(body) {
			t.Errorf("got %+v\n%s, want Miso in the answer, a block in the body", got, body)
		}
	})
}

func TestProviderErrors(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, run func(*testing.T, scenario) result, stream bool) {
		w := serve(t)
		for _, status := range []int{400, 429, 500} {
			w.model.SetFaults(proxytest.Faults{Status: status})
			s := ask(stream, user("hi"))
			s.BaseURL = w.model.URL() + "/v1"
			direct := run(t, s)
			s.BaseURL = w.url + "/v1"
			got := run(t, s)
			got.Memory = direct.Memory
			if got.Status != status || got != direct {
				t.Errorf("%d: %+v, directly %+v", status, got, direct)
			}
		}
	})
}

func TestInterruptedStream(t *testing.T) {
	t.Parallel()
	for name, run := range clients {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := serve(t)
			w.model.SetFaults(proxytest.Faults{CutAfter: 3})
			s := ask(true, user("My cat is called Miso."))
			s.BaseURL = w.url + "/v1"
			if got := run(t, s); got.Error == "" || got.Finish != "" {
				t.Errorf("the cut stream looks whole: %+v", got)
			}
			w.model.SetFaults(proxytest.Faults{})
			w.stop(t) // the proxy stores captured turns before it exits
			w.start(t)
			w.until(t, "the queue to be empty", func(q queue) bool { return q.Pending == 0 })
			if got, _ := w.say(t, run, ask(true, user("What is my cat called?"))); strings.Contains(got.Text, "Miso") {
				t.Error("a turn that was cut off was kept")
			}
		})
	}
}

func TestDisconnectEndsRequest(t *testing.T) {
	t.Parallel()
	for name, run := range clients {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := serve(t)
			w.model.SetFaults(proxytest.Faults{Pause: 200 * time.Millisecond})
			w.model.SetAnswer(func(proxytest.Input) proxytest.Reply {
				return proxytest.Reply{Text: strings.Repeat("word ", 100)}
			})
			s := ask(true, user("hi"))
			s.BaseURL, s.AbortAfter = w.url+"/v1", 2
			run(t, s)
			select {
			case <-w.model.Requests()[0].Left:
			case <-time.After(3 * time.Second):
				t.Error("the upstream request goes on without its client")
			}
		})
	}
}
