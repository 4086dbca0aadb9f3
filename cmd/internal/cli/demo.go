package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"
)

// demoTimeout bounds the whole demonstration.
const demoTimeout = 2 * time.Minute

// The messages of the demonstration.
const (
	demoFact     = "My cat is called Miso and she is afraid of thunder."
	demoQuestion = "What is my cat called?"
)

// demoModel replaces a model. It knows only the text of a request.
type demoModel struct {
	url    string
	server *http.Server
	saw    chan []byte // bodies of its requests
}

func startModel() (*demoModel, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start the stand-in model: %w", err)
	}
	m := &demoModel{url: "http://" + ln.Addr().String(), saw: make(chan []byte, 2)}
	m.server = &http.Server{Handler: m, ReadHeaderTimeout: demoTimeout}
	// Ends when the server is closed.
	go func() { _ = m.server.Serve(ln) }()
	return m, nil
}

func (m *demoModel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	sent, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	if err != nil {
		return // the proxy has disconnected
	}
	answer := "Understood, I will keep that in mind."
	if bytes.Contains(sent, []byte(demoQuestion)) {
		if answer = "I do not know."; bytes.Contains(sent, []byte(demoFact)) {
			answer = "You told me: " + demoFact
		}
	}
	m.saw <- sent
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{
		"id": "chatcmpl-demo", "object": "chat.completion", "model": "stand-in",
		"choices": []any{map[string]any{"index": 0, "finish_reason": "stop", "message": map[string]any{"role": "assistant", "content": answer}}},
	})
}

// DemoProxy is a running proxy.
type DemoProxy struct {
	URL       string
	Delivered func() int // turns that have reached its memory
	Stop      func(context.Context) error
}

// RunDemo shows the demonstration on w, and the next step. start
// starts a proxy, with a directory for its memory, in front of an upstream.
func RunDemo(w io.Writer, start func(dir, upstream string) (*DemoProxy, error)) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), demoTimeout)
	defer cancel()
	dir, err := os.MkdirTemp("", "graphiti-proxy-demo-")
	if err != nil {
		return fmt.Errorf("make a temporary directory: %w", err)
	}
	defer os.RemoveAll(dir)
	model, err := startModel()
	if err != nil {
		return err
	}
	defer func() { _ = model.server.Close() }()
	p, err := start(dir, model.url)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Stop(ctx)) }()
	if err := converse(ctx, w, p, model); err != nil {
		return err
	}
	fmt.Fprint(w, "\nThe memory arrived. To have it with your own model:\n  graphiti-proxy serve\n  export OPENAI_BASE_URL=http://127.0.0.1:8787/v1\n")
	return nil
}

func converse(ctx context.Context, w io.Writer, p *DemoProxy, model *demoModel) error {
	url := p.URL + "/v1/chat/completions"
	fmt.Fprintf(w, "A stand-in model and graphiti-proxy run on this machine, with an empty memory.\n\nFirst conversation\n")
	if _, _, err := say(ctx, w, url, demoFact); err != nil {
		return err
	}
	<-model.saw
	if err := p.awaitDelivery(ctx); err != nil {
		return err
	}
	fmt.Fprintf(w, "\nSecond conversation, which begins with nothing but the question\n")
	answer, header, err := say(ctx, w, url, demoQuestion)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "  header     X-Graphiti-Memory: %s\n\nWhat the client sent\n%s\nWhat the model saw\n", header, indent(body(demoQuestion)))
	saw := <-model.saw
	fmt.Fprint(w, indent(saw))
	if !strings.Contains(answer, "Miso") || !bytes.Contains(saw, []byte("graphiti_memory")) {
		return errors.New("the memory did not arrive; please report this")
	}
	return nil
}

// awaitDelivery waits until the first turn has reached the memory.
func (p *DemoProxy) awaitDelivery(ctx context.Context) error {
	for p.Delivered() == 0 {
		select {
		case <-ctx.Done():
			return errors.New("the turn did not reach the memory in time")
		case <-time.After(5 * time.Millisecond):
		}
	}
	return nil
}

func body(text string) []byte {
	b, _ := json.Marshal(map[string]any{ // plain values: cannot fail
		"model":    "stand-in",
		"messages": []any{map[string]any{"role": "user", "content": text}},
	})
	return b
}

func say(ctx context.Context, w io.Writer, url, text string) (answer, header string, err error) {
	fmt.Fprintf(w, "  you        %s\n", text)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body(text)))
	if err != nil {
		return "", "", fmt.Errorf("talk to the proxy: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", "", fmt.Errorf("talk to the proxy: %w", err)
	}
	defer resp.Body.Close()
	var said struct {
		Choices []struct {
			Message struct{ Content string }
		}
	}
	if err := json.NewDecoder(resp.Body).Decode(&said); err != nil || len(said.Choices) == 0 {
		return "", "", fmt.Errorf("the model answered %s", resp.Status)
	}
	answer = said.Choices[0].Message.Content
	fmt.Fprintf(w, "  model      %s\n", answer)
	return answer, resp.Header.Get("X-Graphiti-Memory"), nil
}

// indent formats JSON for people, with line feeds in strings.
func indent(text []byte) string {
	var b bytes.Buffer
	if json.Indent(&b, text, "  ", "  ") != nil {
		return string(text)
	}
	shown := strings.ReplaceAll(b.String(), `\n`, "\n            ")
	shown = strings.NewReplacer(`\u003c`, "<", `\u003e`, ">").Replace(shown)
	return "  " + shown + "\n"
}
