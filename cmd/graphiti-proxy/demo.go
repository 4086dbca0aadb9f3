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
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/graphiti-proxy/graphiti-proxy/config"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/proxytest"
)

// demoTimeout bounds the whole demonstration.
const demoTimeout = 30 * time.Second

func newDemoCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "demo",
		Short: "Show the whole loop in a few seconds, without a key or a network",
		Long: "Run a stand-in model and the real proxy on this machine, say something in one\n" +
			"conversation, ask for it in another, and show what the model saw. Nothing is\n" +
			"kept and nothing leaves this machine.",
		Example: "  graphiti-proxy demo",
		RunE: func(c *cobra.Command, _ []string) error {
			return demo(c.OutOrStdout())
		},
	}
}

func demo(w io.Writer) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), demoTimeout)
	defer cancel()
	dir, err := os.MkdirTemp("", "graphiti-proxy-demo-")
	if err != nil {
		return fmt.Errorf("make a temporary directory: %w", err)
	}
	defer os.RemoveAll(dir)
	model, err := proxytest.Start()
	if err != nil {
		return err
	}
	defer func() { _ = model.Close() }()
	// Neither the environment nor a file has a say in this.
	cfg, err := config.Load(config.Sources{Dir: dir, Env: []string{"HOME=" + dir}, Flags: map[string]string{
		"listen": "127.0.0.1:0", "admin.listen": "off", "data_dir": dir, "upstream.openai": model.URL(), "upstream.anthropic": model.URL(),
		"recall.timeout": "2s",
	}})
	if err != nil {
		return err
	}
	a, err := newApp(cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	served := make(chan error, 1)
	// Ends with Shutdown below.
	go func() { served <- a.Serve() }()
	defer func() { err = errors.Join(err, a.Shutdown(ctx), <-served) }()
	return demoTalk(ctx, w, a, model)
}

func demoTalk(ctx context.Context, w io.Writer, a *app, model *proxytest.Provider) error {
	url := "http://" + a.proxy.Addr().String() + "/v1/chat/completions"
	fmt.Fprintf(w, "A stand-in model and graphiti-proxy run on this machine, with an empty memory.\n\nFirst conversation\n")
	const fact, question = "My cat is called Miso and she is afraid of thunder.", "What is my cat called?"
	if _, _, err := demoSay(ctx, w, url, fact); err != nil {
		return err
	}
	if err := a.awaitDelivery(ctx); err != nil {
		return err
	}
	fmt.Fprintf(w, "\nSecond conversation, which begins with nothing but the question\n")
	model.Forget()
	answer, header, err := demoSay(ctx, w, url, question)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "  header     X-Graphiti-Memory: %s\n\nWhat the client sent\n%s\nWhat the model saw\n", header, indent(demoBody(question)))
	requests := model.Requests()
	if len(requests) != 1 {
		return fmt.Errorf("the model got %d requests instead of 1", len(requests))
	}
	fmt.Fprint(w, indent(requests[0].Body))
	if !strings.Contains(answer, "Miso") || !bytes.Contains(requests[0].Body, []byte("graphiti_memory")) {
		return errors.New("the memory did not arrive; please report this")
	}
	fmt.Fprintf(w, "\nThe memory arrived. To have it with your own model:\n  graphiti-proxy serve\n  export OPENAI_BASE_URL=http://127.0.0.1:8787/v1\n")
	return nil
}

// awaitDelivery waits until nothing is on its way into the memory.
func (a *app) awaitDelivery(ctx context.Context) error {
	for a.queue().Delivered == 0 {
		select {
		case <-ctx.Done():
			return errors.New("the turn did not reach the memory in time")
		case <-time.After(5 * time.Millisecond):
		}
	}
	return nil
}

func demoBody(text string) []byte {
	b, _ := json.Marshal(map[string]any{ // plain values: cannot fail
		"model":    "stand-in",
		"messages": []any{map[string]any{"role": "user", "content": text}},
	})
	return b
}

// demoSay sends one message in a conversation of its own.
func demoSay(ctx context.Context, w io.Writer, url, text string) (answer, header string, err error) {
	fmt.Fprintf(w, "  you        %s\n", text)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(demoBody(text)))
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

// indent makes JSON readable, with line feeds in strings shown as such.
func indent(body []byte) string {
	var b bytes.Buffer
	if json.Indent(&b, body, "  ", "  ") != nil {
		return string(body)
	}
	text := strings.ReplaceAll(b.String(), `\n`, "\n            ")
	text = strings.NewReplacer(`\u003c`, "<", `\u003e`, ">").Replace(text)
	return "  " + text + "\n"
}
