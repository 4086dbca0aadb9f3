package main

import (
	"bytes"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/graphiti-proxy/graphiti-proxy/cmd/internal/cli"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/internal/helptest"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
)

// command runs a command with dir as its home and working directory, and returns its
// standard output.
func command(t *testing.T, dir string, args ...string) (out string, err error) {
	t.Helper()
	out, _, err = commandIn(t, dir, dir, args...)
	return out, err
}

// commandIn runs a command with a home and a working directory, and returns its standard
// output and standard error.
func commandIn(t *testing.T, home, dir string, args ...string) (out, errOut string, err error) {
	t.Helper()
	vars := []string{"GRAPHITI_PROXY_ADMIN_LISTEN=127.0.0.1:1"} // no proxy listens there
	for _, name := range []string{"HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"} {
		vars = append(vars, name+"="+home)
	}
	c := newRootCommand()
	var b, e bytes.Buffer
	c.SetOut(&b)
	c.SetErr(&e)
	c.SetArgs(args)
	err = c.ExecuteContext(cli.InEnvironment(t.Context(), cli.Environment{Vars: vars, Dir: dir}))
	return b.String(), e.String(), err
}

// owner returns the person of single mode from the file owner of the data directory.
func owner(t *testing.T, dir string) string {
	t.Helper()
	b := helptest.File(t, filepath.Join(dir, "graphiti-proxy", "owner"))
	return strings.TrimSpace(string(b))
}

// TestForgottenConversation checks that a conversation gets no block once one of its blocks
// has been forgotten, and that the header and the status report it. With
// memory.drop_bound_thinking the request asks the API to drop the thinking bound to that
// block.
func TestForgottenConversation(t *testing.T) {
	t.Parallel()
	for _, drop := range []string{"false", "true"} {
		w := start(t, t.TempDir(), map[string]string{"identity.owner": "josh", "memory.drop_bound_thinking": drop})
		w.say("My cat is called Miso.")
		w.delivered(1)
		thinking := m{"type": "enabled", "budget_tokens": 1024}
		history := []m{{"role": "user", "content": "What is my cat called?"}}
		ask := func(beta string) (header, body, betas string) {
			_, h := w.exchange("/v1/messages", m{"model": "m", "max_tokens": 9, "thinking": thinking, "messages": history},
				"Anthropic-Version", "2023-06-01", "Anthropic-Beta", beta, "X-Graphiti-Session", "s")
			r := w.model.Requests()
			last := r[len(r)-1]
			return h.Get("X-Graphiti-Memory"), string(last.Body), last.Headers.Get("Anthropic-Beta")
		}
		if header, _, _ := ask("one"); !strings.HasPrefix(header, "recalled") {
			t.Fatalf("got %q, want \"recalled\" at its beginning", header)
		}
		w.delivered(2)
		must(t, helptest.ErrorOf(w.remembers().service.Forget(t.Context(), &service.ForgetRequest{Selector: service.Selector{Group: w.group()}})))
		w.say("My cat is called Tom.")
		w.delivered(3)
		history = append(history, m{"role": "assistant", "content": "Miso."}, m{"role": "user", "content": "And what is my cat called now?"})
		for range 2 {
			header, body, betas := ask("one")
			if !strings.HasPrefix(header, "off;") || !strings.HasSuffix(header, "reason=forgotten") || strings.Contains(body, "graphiti_memory") {
				t.Errorf("%s: got %s, want \"off;\" at its beginning, \"reason=forgotten\" at its end, no \"graphiti_memory\" in it", header, body)
			}
			if asked := gjson.Get(body, "thinking.block_binding.prefix_mismatch_behavior").Str == "drop_block" && betas == "one,thinking-binding-controls-2026-08-01"; asked != (drop == "true") {
				t.Errorf("drop_bound_thinking %s: %s, beta %q", drop, body, betas)
			}
		}
		w.stop()
	}
}

// group returns the group that stores the owner's turns.
func (w *world) group() string {
	w.t.Helper()
	id, namer, err := w.remembers().callers.settings(w.app.cfg)
	must(w.t, err)
	return namer.Writes(graphiti.Who{User: id.Owner})[0].Group
}

func TestMemorySearch_PrintsIDsToForget(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{nil, {"--explain"}} {
		dir := t.TempDir()
		must(t, helptest.ErrorOf(command(t, dir, "memory", "promote", "--kind", "decision", "We use Postgres")))
		search := append([]string{"memory", "search", "Do we use Postgres?"}, args...)
		out, errOut, err := commandIn(t, dir, dir, search...)
		row := regexp.MustCompile(`(?m)^([0-9a-f]+) .*Postgres`).FindStringSubmatch(out)
		if err != nil || row == nil || !strings.Contains(errOut, "forget one: graphiti-proxy memory forget --message ID") {
			t.Errorf("%q: got %v and\n%s\nwant a row with an ID, and the command in %q", search, err, out, errOut)
			continue
		}
		if _, err := command(t, dir, "memory", "forget", "--message", row[1]); err != nil {
			t.Errorf("%q: forget %s: got %v, want no error", search, row[1], err)
		}
		if out, err := command(t, dir, search...); err != nil || strings.Contains(out, "use Postgres") {
			t.Errorf("%q after forget: got %v and\n%s\nwant no fact", search, err, out)
		}
	}
}
