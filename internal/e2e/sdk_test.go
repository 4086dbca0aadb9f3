//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/graphiti-proxy/graphiti-proxy/proxy/proxytest"
)

// talk is a conversation that an SDK holds.
type talk struct {
	BaseURL string   `json:"base_url"`
	SDK     string   `json:"sdk"`
	Stream  bool     `json:"stream"`
	System  string   `json:"system"`
	Turns   []string `json:"turns"`
}

// talked is a client's output.
type talked struct {
	Texts      []string
	Miscounted int // number of token counts that differ from the billed number
}

type sdk struct{ command, file, dir, needs, name string }

var sdks = []sdk{
	{"node", "talk.mjs", ".cache/node", ".cache/node/node_modules/openai", "openai chat"},
	{"node", "talk.mjs", ".cache/node", ".cache/node/node_modules/openai", "openai responses"},
	{"node", "talk.mjs", ".cache/node", ".cache/node/node_modules/openai", "openai responses, stored"},
	{"node", "talk.mjs", ".cache/node", ".cache/node/node_modules/@anthropic-ai/sdk", "anthropic messages"},
	{"node", "talk.mjs", ".cache/node", ".cache/node/node_modules/ai", "ai, openai-compatible"},
	{"node", "talk.mjs", ".cache/node", ".cache/node/node_modules/@ai-sdk/openai", "ai, openai"},
	{"node", "talk.mjs", ".cache/node", ".cache/node/node_modules/@ai-sdk/anthropic", "ai, anthropic"},
	{"node", "talk.mjs", ".cache/node", ".cache/node/node_modules/@google/genai", "google genai"},
	{"node", "talk.mjs", ".cache/node", ".cache/node/node_modules/@ai-sdk/google", "ai, google"},
	{"python3", "../../python/talk.py", ".cache/python", ".cache/python/openai", "openai chat"},
	{"python3", "../../python/talk.py", ".cache/python", ".cache/python/openai", "openai responses"},
	{"python3", "../../python/talk.py", ".cache/python", ".cache/python/anthropic", "anthropic messages"},
	{"python3", "../../python/talk.py", ".cache/python", ".cache/python/google/genai", "google genai"},
}

// start starts a program with the SDK, and returns a function that holds a conversation.
func (s sdk) start(t *testing.T) func(*testing.T, talk) talked {
	t.Helper()
	if _, err := os.Stat(s.needs); err != nil {
		t.Skipf("SKIPPED LOUDLY: %s is not installed; run internal/e2e/install.sh where its registry is reached", s.needs)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	cmd := exec.CommandContext(ctx, s.command, s.file)
	cmd.Dir, cmd.Stderr, cmd.Env = s.dir, os.Stderr, append(os.Environ(), "PYTHONPATH=.")
	in, err := cmd.StdinPipe()
	must(t, err)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	t.Cleanup(func() {
		in.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("%s: %v", s.command, err)
		}
		cancel()
	})
	asks, answers := json.NewEncoder(in), json.NewDecoder(out)
	return func(t *testing.T, what talk) (r talked) {
		t.Helper()
		what.SDK, what.System = s.name, "Be brief."
		must(t, asks.Encode(what))
		if err := answers.Decode(&r); err != nil {
			t.Fatalf("%s: %v", s.command, err)
		}
		return r
	}
}

// blockInJSON matches a block in a body: in the string of a user message, or as a part of
// its own.
var blockInJSON = regexp.MustCompile(`\{(?:"type":"(?:input_)?text",)?"text":"<graphiti_memory>[^"]*</graphiti_memory>\\n\\n"\},|<graphiti_memory>[^"]*?</graphiti_memory>\\n\\n`)

// invented matches the ids and signatures that the stand-in model makes up.
var invented = regexp.MustCompile(`("signature":"|"encrypted_content":"|"thoughtSignature": ?"|resp_)[0-9a-f]+`)

// TestSDKs checks with every SDK that a fact of one conversation reaches the next, before
// the question, across a tool round and the turn after it. Every request is the same as
// without the proxy, except for the block, and each turn is stored exactly once. The
// stand-in refuses requests that the real API would refuse, and thoughts after a changed
// history.
func TestSDKs(t *testing.T) {
	t.Parallel()
	for _, s := range sdks {
		t.Run(s.command+" "+s.name, func(t *testing.T) {
			t.Parallel()
			converse := s.start(t)
			for _, stream := range []bool{false, true} {
				t.Run(fmt.Sprintf("stream=%v", stream), func(t *testing.T) { remembersWith(t, converse, stream) })
			}
		})
	}
}

// remembersWith holds the conversations of TestSDKs.
func remembersWith(t *testing.T, converse func(*testing.T, talk) talked, stream bool) {
	w := serve(t)
	thinks := func(c proxytest.Input) proxytest.Reply {
		r := proxytest.Recollect(c)
		r.Thinks = true
		if r.Tool == "" && !strings.Contains(r.Text, "I do not know") {
			r.Text = "Noted."
		}
		return r
	}
	w.model.SetAnswer(thinks)
	converse(t, talk{BaseURL: w.url, Stream: stream, Turns: []string{"My cat is called Miso."}})
	w.until(t, "the first conversation", func(q queue) bool { return q.Delivered == 1 })
	w.model.Forget()

	second := talk{BaseURL: w.url, Stream: stream, Turns: []string{
		`What is my cat called? [[tool search {"q":"cat"}]]`,
		"Thanks. Where does it sleep?",
	}}
	got := converse(t, second)
	through := w.model.Requests()
	w.until(t, "the second conversation", func(q queue) bool { return q.Delivered == 3 })
	w.model.Forget()

	second.BaseURL = w.model.URL()
	want := converse(t, second)
	direct := w.model.Requests()
	if d := cmp.Diff(want.Texts, got.Texts); d != "" {
		t.Errorf("what the client got (- directly, + through the proxy):\n%s", d)
	}
	if len(through) != len(direct) {
		t.Fatalf("%d requests through the proxy, %d directly", len(through), len(direct))
	}
	counts := 0
	for i, r := range through {
		if r.Refused != "" {
			t.Errorf("request %d was refused: %s", i, r.Refused)
		}
		body := string(r.Body)
		if strings.HasSuffix(r.Path, "/count_tokens") {
			counts++
		} else if !strings.Contains(body, "<graphiti_memory>") && !strings.Contains(body, "previous_response_id") {
			t.Errorf("request %d has no memory: %.400s", i, body)
		} else if at := strings.Index(body, "called Miso"); at >= 0 && at > strings.Index(body, "What is my cat") {
			t.Errorf("request %d: the memory stands behind the question: %.400s", i, body)
		}
		a := invented.ReplaceAllString(blockInJSON.ReplaceAllString(body, ""), "$1")
		if b := invented.ReplaceAllString(string(direct[i].Body), "$1"); a != b {
			t.Errorf("request %d differs by more than the block:\n%s", i, cmp.Diff(b, a))
		}
	}
	if got.Miscounted > counts/3 {
		t.Errorf("%d of %d counts were wrong", got.Miscounted, counts)
	}
	if q := w.queue(t); q.Delivered != 3 {
		t.Errorf("%d turns were kept, want 3", q.Delivered)
	}
}
