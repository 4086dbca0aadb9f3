//go:build e2e

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
)

// inventedWeeks are the conversations of testdata/invented.yaml.
type inventedWeeks struct {
	Begins        string
	Conversations []inventedConversation
}

type inventedConversation struct {
	Day                        int
	At, Project, Client, Model string
	Says                       []string
}

func readInvented(t *testing.T) (all inventedWeeks) {
	t.Helper()
	must(t, yaml.Unmarshal([]byte(read(t, "testdata/invented.yaml")), &all))
	return all
}

// when is when a conversation begins.
func (all *inventedWeeks) when(t *testing.T, c *inventedConversation) time.Time {
	t.Helper()
	at, err := time.Parse("2006-01-02 15:04", all.Begins+" "+c.At)
	must(t, err)
	return at.AddDate(0, 0, c.Day)
}

// hold holds a conversation through the proxy, each turn with the ones before it, and
// waits until it is kept.
func (w *world) hold(t *testing.T, c *inventedConversation) {
	t.Helper()
	speak, path := chatClient, "/v1/chat/completions"
	switch {
	case strings.HasPrefix(c.Client, "claude-cli/"):
		speak, path = messagesClient, "/v1/messages"
	case strings.HasPrefix(c.Client, "codex_cli_rs/"):
		speak, path = responsesClient, "/v1/responses"
	}
	var history []any
	for _, text := range c.Says {
		kept := w.queue(t).Delivered
		history = append(history, user(text))
		body, answer := speak(c.Model, history)
		b, err := json.Marshal(body)
		must(t, err)
		req, err := http.NewRequest(http.MethodPost, w.url+path, bytes.NewReader(b))
		must(t, err)
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Authorization", "Bearer sk-invented")
		req.Header.Set("User-Agent", c.Client)
		req.Header.Set("Anthropic-Version", "2023-06-01")
		if c.Project != "" {
			req.Header.Set("X-Graphiti-Workspace", c.Project)
		}
		resp, err := http.DefaultClient.Do(req)
		must(t, err)
		got, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: %v, %s", resp.Status, err, got)
		}
		must(t, json.Unmarshal(got, answer))
		history = append(history, map[string]any{"role": "assistant", "content": answer.text()})
		w.until(t, "the turn", func(q queue) bool { return q.Delivered > kept && q.Pending == 0 })
	}
}

// answer is an answer in the format of any of the APIs.
type answer struct {
	Choices []struct{ Message struct{ Content string } } // Chat Completions
	Content []struct{ Text string }                      // Messages
	Output  []struct{ Content []struct{ Text string } }  // Responses
}

func (a *answer) text() (text string) {
	for _, c := range a.Choices {
		text += c.Message.Content
	}
	for _, c := range a.Content {
		text += c.Text
	}
	for _, o := range a.Output {
		for _, c := range o.Content {
			text += c.Text
		}
	}
	return text
}

func chatClient(model string, history []any) (map[string]any, *answer) {
	return map[string]any{"model": model, "messages": history}, new(answer)
}

func messagesClient(model string, history []any) (map[string]any, *answer) {
	return map[string]any{"model": model, "max_tokens": 1000, "messages": history}, new(answer)
}

func responsesClient(model string, history []any) (map[string]any, *answer) {
	return map[string]any{"model": model, "input": history, "store": false}, new(answer)
}

// importMany imports n messages of conversations that differ, always the same ones.
func (w *world) importMany(t *testing.T, n int) {
	t.Helper()
	words := strings.Fields("coffee garden bicycle violin bread museum river laptop postgres deploy market lemon kitchen window train ticket mountain winter orange picture school letter island candle bridge forest dinner pepper carpet mirror saddle button jacket")
	r := rand.New(rand.NewPCG(1, 2))
	end := time.Now().Truncate(time.Hour)
	var b bytes.Buffer
	for i := range n {
		conversation := i / 40
		line := map[string]any{"role": []string{"user", "assistant"}[i%2], "session": fmt.Sprintf("imported-%d", conversation),
			"timestamp": end.Add(-time.Duration(n-i) * 5 * time.Minute).UTC().Format(time.RFC3339)}
		if conversation%3 == 0 {
			line["scope"], line["workspace"] = "workspace", fmt.Sprintf("project-%d", conversation%9)
		}
		said := make([]string, 8)
		for i := range said {
			said[i] = words[r.IntN(len(words))]
		}
		line["content"] = fmt.Sprintf("The %s, number %d.", strings.Join(said, " "), i)
		must(t, json.NewEncoder(&b).Encode(line))
	}
	file := filepath.Join(w.dir, "many.jsonl")
	write(t, b.String(), file)
	w.command(t, "memory", "import", file)
}

// command runs a command of the binary on the world's files. The proxy must not run.
func (w *world) command(t *testing.T, args ...string) string {
	t.Helper()
	out, err := w.try(args...)
	if err != nil {
		t.Fatalf("graphiti-proxy %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// try runs a command that may fail.
func (w *world) try(args ...string) (out string, err error) {
	cmd := exec.Command(binary, args...)
	cmd.Dir = w.dir
	cmd.Env = append(append(os.Environ(), "HOME="+w.dir, "XDG_CONFIG_HOME=", "XDG_DATA_HOME="), w.env...)
	b, err := cmd.CombinedOutput()
	return string(b), err
}
