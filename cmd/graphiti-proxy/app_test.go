package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/capture"
	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/cmd/internal/cli"
	"github.com/graphiti-proxy/graphiti-proxy/config"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/graphititest"
	"github.com/graphiti-proxy/graphiti-proxy/internal/health"
	"github.com/graphiti-proxy/graphiti-proxy/internal/helptest"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/proxytest"
)

// world is a complete proxy in front of a stand-in model.
type world struct {
	t     *testing.T
	app   *app
	model *proxytest.Provider
	log   *lockedBuffer
	stop  func()

	dir      string // with settings, for restart
	settings map[string]string

	client *http.Client // with connections of its own
}

// lockedBuffer is a log buffer for several goroutines.
type lockedBuffer struct {
	mu sync.Mutex // guards b
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// unhurried is the recall.timeout of tests that assert no deadline. With a shorter one, a
// busy machine could cut off the search, which leaves no block, or the read of a checkout,
// which leaves no project.
const unhurried = "1m"

// start starts a proxy with the given settings. It may reuse the directory of an earlier
// one.
func start(t *testing.T, dir string, settings map[string]string) *world {
	t.Helper()
	model, err := proxytest.Start()
	must(t, err)
	flags := map[string]string{"listen": "127.0.0.1:0", "admin.listen": "127.0.0.1:0", "data_dir": dir, "upstream.openai": model.URL(), "upstream.anthropic": model.URL(), "recall.timeout": unhurried}
	for k, v := range settings {
		flags[k] = v
	}
	cfg, err := config.Load(config.Sources{Flags: flags, Env: []string{"HOME=" + dir}})
	must(t, err)
	w := &world{t: t, model: model, log: &lockedBuffer{}, dir: dir, settings: settings, client: &http.Client{Transport: &http.Transport{}}}
	w.app, err = newApp(cfg, slog.New(slog.NewTextHandler(w.log, nil)))
	must(t, err)
	served := make(chan error, 1)
	go func() { served <- w.app.Serve() }()
	stopped := false
	w.stop = func() {
		if stopped {
			return
		}
		stopped = true
		w.client.CloseIdleConnections()
		ctx, cancel := context.WithTimeout(context.Background(), helptest.Patience)
		defer cancel()
		var lost *capture.LostError
		if err := w.app.Shutdown(ctx); err != nil && (!errors.As(err, &lost) || !strings.Contains(w.log.String(), "memory is off: its storage is unusable")) {
			t.Error(err)
		}
		if err := <-served; err != nil {
			t.Error(err)
		}
		model.Close()
	}
	t.Cleanup(w.stop)
	return w
}

// startModel starts a stand-in model that ends with the test.
func startModel(t *testing.T) *proxytest.Provider {
	t.Helper()
	model, err := proxytest.Start()
	must(t, err)
	t.Cleanup(func() { _ = model.Close() })
	return model
}

// startGraphiti starts a stand-in for Graphiti that ends with the test.
func startGraphiti(t *testing.T, o graphititest.Options) *graphititest.Graphiti {
	t.Helper()
	g, err := graphititest.Start(o)
	must(t, err)
	t.Cleanup(func() { _ = g.Close() })
	return g
}

// writeFile writes a file that only its owner can read.
func writeFile(t *testing.T, path, text string) {
	t.Helper()
	must(t, os.WriteFile(path, []byte(text), 0o600))
}

// remembers returns the memory part of the proxy.
func (w *world) remembers() *remembering { return w.app.memory().(*remembering) }

// chatBody returns a conversation of one message.
func chatBody(text string) []byte {
	b, _ := json.Marshal(map[string]any{"model": "stand-in", "messages": []any{map[string]any{"role": "user", "content": text}}})
	return b
}

// say sends one message as a conversation of its own, and returns the answer, the memory
// header, and the message that the model received.
func (w *world) say(text string, headers ...string) (answer, header, saw string) {
	w.t.Helper()
	w.model.Forget()
	req, _ := http.NewRequest(http.MethodPost, "http://"+w.app.proxy.Addr().String()+"/v1/chat/completions", bytes.NewReader(chatBody(text)))
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := w.client.Do(req)
	must(w.t, err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		w.t.Fatalf("%s: got %s (%v), want no error, Status 200", resp.Status, b, err)
	}
	var a struct {
		Choices []struct{ Message struct{ Content string } }
	}
	if err := json.Unmarshal(b, &a); err != nil {
		w.t.Fatalf("decode the answer %q: %v", b, err)
	}
	var r struct {
		Messages []struct{ Content string }
	}
	first := w.model.Requests()[0]
	if err := json.Unmarshal(first.Body, &r); err != nil {
		w.t.Fatalf("decode the body %q of %s %s at the model: %v", first.Body, first.Method, first.Path, err)
	}
	return a.Choices[0].Message.Content, resp.Header.Get("X-Graphiti-Memory"), r.Messages[0].Content
}

// delivered waits until n turns are delivered.
func (w *world) delivered(n int) {
	w.t.Helper()
	waitUntil(w.t, fmt.Sprint(n, " delivered turns"), func() bool { return w.app.memory().queue().Delivered >= n })
	// The file counts a turn a moment before it is indexed. After a later write, the index
	// is complete.
	must(w.t, w.remembers().pipeline.CutOff(context.Background(), ledger.Turn{ID: "none"}))
}

// shortTerm waits until the short-term memory of a session in the scope contains text. The
// proxy writes it some time after the turn.
func (w *world) shortTerm(scope, text string) {
	w.t.Helper()
	waitUntil(w.t, "the session's notes", func() (found bool) {
		err := w.remembers().state.Snapshots.Each(w.t.Context(), func(_ string, body []byte) error {
			found = found || strings.Contains(string(body), text)
			return nil
		}, scope)
		return err == nil && found
	})
}

// restart stops the proxy, which writes all captured turns to disk, starts it again, and
// waits until they are delivered.
func (w *world) restart() *world {
	w.t.Helper()
	w.stop()
	next := start(w.t, w.dir, w.settings)
	waitUntil(w.t, "what was captured to be delivered", func() bool { return next.app.memory().queue().Pending == 0 })
	return next
}

const (
	fact     = "My cat is called Miso."
	question = "What is my cat called?"
)

func TestDemoProvesThatAMemoryArrived(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := cli.RunDemo(&out, startDemo); err != nil {
		t.Fatalf("%v, after\n%s", err, out.String())
	}
	for _, want := range []string{"<graphiti_memory>", "My cat is called Miso", "recalled; facts=1", "The memory arrived."} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in\n%s", want, out.String())
		}
	}
}

func TestClientChoosesForOneRequest(t *testing.T) {
	t.Parallel()
	w := start(t, t.TempDir(), nil)
	w.say("My dog is called Rex.", "X-Graphiti-Memory", "recall") // the turn is not stored
	w.say("My fish is called Nemo.", "X-Graphiti-Memory", "off")
	w.say(fact, "X-Graphiti-Memory", "ingest")
	w.delivered(1)
	if _, header, saw := w.say(question, "X-Graphiti-Memory", "off"); saw != question || !strings.HasPrefix(header, "off; facts=0; chars=0;") || !strings.HasSuffix(header, "reason=opt_out") {
		t.Errorf("got %s, %q, want off; reason=opt_out, and the message as it was sent", header, saw)
	}
	_, _, saw := w.say("What is my dog, my fish and my cat called?")
	if !strings.Contains(saw, "Miso") || strings.Contains(saw, "Rex") || strings.Contains(saw, "Nemo") {
		t.Errorf("got %q, want \"Miso\" in it, no \"Rex\" in it, no \"Nemo\" in it", saw)
	}
}

func user(text string) map[string]any { return map[string]any{"role": "user", "content": text} }

// send sends a conversation, and returns the answer, or "" after an error, and the first
// message that the model received.
func (w *world) send(memory string, messages ...map[string]any) (answer, first string) {
	w.t.Helper()
	w.model.Forget()
	b, _ := json.Marshal(map[string]any{"model": "stand-in", "messages": messages})
	req, _ := http.NewRequest(http.MethodPost, "http://"+w.app.proxy.Addr().String()+"/v1/chat/completions", bytes.NewReader(b))
	req.Header.Set("X-Graphiti-Memory", memory)
	resp, err := w.client.Do(req)
	must(w.t, err)
	defer resp.Body.Close()
	var a struct {
		Choices []struct{ Message struct{ Content string } }
	}
	if err := json.NewDecoder(resp.Body).Decode(&a); err == nil && len(a.Choices) > 0 {
		answer = a.Choices[0].Message.Content
	}
	var r struct {
		Messages []struct{ Content string }
	}
	must(w.t, json.Unmarshal(w.model.Requests()[0].Body, &r))
	return answer, r.Messages[0].Content
}

// TestChatWithFailingGraphiti checks that a failing Graphiti does not change the
// answer, and that recall does not wait for it.
func TestChatWithFailingGraphiti(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name    string
		fault   graphititest.Fault
		timeout string
		want    string
	}{
		{"refuses", graphititest.Refuse(), unhurried, "empty"},
		{"hangs", graphititest.Hang(), "1s", "empty"},
		{"500", graphititest.Answer(500, ""), unhurried, "empty"},
		{"garbage", graphititest.Garbage(), unhurried, "empty"},
		{"50 MB", graphititest.Huge(50 << 20), unhurried, "empty"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := startGraphiti(t, graphititest.Options{})
			for _, c := range []graphititest.Call{graphititest.Search, graphititest.Messages} {
				g.Always(c, tc.fault)
			}
			w := start(t, t.TempDir(), map[string]string{
				"memory.backend": "graphiti", "memory.endpoint": g.URL(), "memory.consent": "true", "recall.timeout": tc.timeout, "memory.timeout": tc.timeout,
			})
			answer, header, saw := w.say(question)
			if answer != "I do not know." || saw != question || !strings.HasPrefix(header, tc.want+"; facts=0; chars=0;") {
				t.Errorf("got %q, %s, %q, want the plain answer, %s, and the message as it was sent", answer, header, saw, tc.want)
			}
			w.stop()
			if strings.Contains(w.log.String(), "cat") {
				t.Errorf("the log quotes the conversation: %s", w.log)
			}
		})
	}
}

func TestMemoryNeedsConsent(t *testing.T) {
	t.Parallel()
	g := startGraphiti(t, graphititest.Options{})
	w := start(t, t.TempDir(), map[string]string{"memory.backend": "graphiti", "memory.endpoint": g.URL()})
	answer, header, saw := w.say(question)
	if answer != "I do not know." || saw != question || !strings.HasSuffix(header, "reason=consent") || !strings.HasPrefix(header, "off;") {
		t.Errorf("got %q, %s, %q, want the plain answer, off; reason=consent, and the message as it was sent", answer, header, saw)
	}
	if r := g.Requests(); len(r) != 0 {
		t.Errorf("Graphiti got %+v", r)
	}
	if strings.Count(w.log.String(), "memory.consent") != 1 {
		t.Errorf("the log does not say so once: %s", w.log)
	}
	if s := w.app.status(context.Background(), true); s.Memory.State != health.StateOff || !strings.Contains(s.Memory.Remedy, "memory.consent") || !s.Ready {
		t.Errorf("got %+v, want State health.StateOff, \"memory.consent\" in it, Ready true", s.Memory)
	}
}

func TestDataDirThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	writeFile(t, file, "")
	cfg, err := config.Load(config.Sources{Flags: map[string]string{"listen": "127.0.0.1:0", "admin.listen": "off", "data_dir": filepath.Join(file, "below")}, Env: []string{"HOME=" + t.TempDir()}})
	must(t, err)
	if _, err = newApp(cfg, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "data_dir") || !strings.Contains(err.Error(), file) {
		t.Errorf("got %v, want an error that names data_dir and %s", err, file)
	}
}
