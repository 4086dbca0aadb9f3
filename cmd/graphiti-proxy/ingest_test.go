package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sort"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/internal/helptest"
)

// request posts a conversation to the chat completions API and returns the status.
func (w *world) request(body any, headers ...string) int {
	w.t.Helper()
	return w.requestTo("/v1/chat/completions", body, headers...)
}

func (w *world) requestTo(path string, body any, headers ...string) int {
	w.t.Helper()
	status, _ := w.exchange(path, body, headers...)
	return status
}

// header posts a request and returns its X-Graphiti-Memory header.
func (w *world) header(path string, body any) string {
	w.t.Helper()
	_, h := w.exchange(path, body)
	return h.Get("X-Graphiti-Memory")
}

func (w *world) exchange(path string, body any, headers ...string) (int, http.Header) {
	w.t.Helper()
	b, err := json.Marshal(body)
	must(w.t, err)
	req, err := http.NewRequest(http.MethodPost, "http://"+w.app.proxy.Addr().String()+path, strings.NewReader(string(b)))
	must(w.t, err)
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := w.client.Do(req)
	must(w.t, err)
	defer resp.Body.Close()
	must(w.t, helptest.ErrorOf(io.Copy(io.Discard, resp.Body)))
	return resp.StatusCode, resp.Header
}

type m = map[string]any

func chat(messages ...m) m { return m{"model": "m", "messages": messages} }

// history returns a conversation of n earlier turns and a new message.
func history(n int, last string) m {
	var messages []m
	for i := range n {
		messages = append(messages, m{"role": "user", "content": fmt.Sprint("I say ", i)}, m{"role": "assistant", "content": fmt.Sprint("you said ", i)})
	}
	return chat(append(messages, m{"role": "user", "content": last})...)
}

// held returns the texts of the owner's group.
func (w *world) held() (contents []string) {
	w.t.Helper()
	id, namer, err := w.remembers().callers.settings(w.app.cfg)
	must(w.t, err)
	for _, r := range w.heldIn(namer.Writes(graphiti.Who{User: id.Owner})[0].Group) {
		contents = append(contents, r.Text)
	}
	return contents
}

// TestHistoryAfterClientsExchangeIsNotStored checks that no history is stored if the
// conversation begins with an exchange by the client, such as an example or a summary: the
// client may have written more of it.
func TestHistoryAfterClientsExchangeIsNotStored(t *testing.T) {
	t.Parallel()
	assistant := func(s string) m { return m{"role": "assistant", "content": s} }
	for name, begins := range map[string][]m{
		"aider's examples":     {user("Change the greeting to be more casual"), assistant("Ok, I will."), user("Name the files that you need, and wait until I have added them."), assistant("Ok, I wait for your files.")},
		"Claude Code, resumed": {user("This session is being continued from a previous conversation.\nThe port was asked for."), assistant("It is 6543."), user("Go on with the last task."), assistant("There is nothing to answer.")},
	} {
		t.Run(name, func(t *testing.T) {
			w := start(t, t.TempDir(), nil)
			w.request(chat(append(begins, user("Our gate is called Bluefin."))...))
			w.delivered(1)
			if diff := cmp.Diff([]string{"Our gate is called Bluefin.", "Understood, I will keep that in mind."}, w.held()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestGitMetadata checks that the commit and the state reported by Codex are stored only
// with ingest.git_metadata, and that its path never is.
func TestGitMetadata(t *testing.T) {
	t.Parallel()
	const commit = "0123456789abcdef0123456789abcdef01234567"
	told := `{"turn_id":"x","workspaces":{"/home/dev/widgets":{"associated_remote_urls":{"origin":"https://github.com/acme/widgets.git"},"latest_git_commit_hash":"` + commit + `","has_changes":true}}}`
	for setting, want := range map[string]string{
		"true":  `"git":{"commit":"` + commit + `","dirty":true}`,
		"false": "",
	} {
		w := start(t, t.TempDir(), map[string]string{"ingest.git_metadata": setting})
		w.request(history(0, "I say something."), "X-Codex-Turn-Metadata", told)
		w.delivered(1)
		id, namer, err := w.remembers().callers.settings(w.app.cfg)
		must(t, err)
		rows := w.heldIn(namer.Writes(graphiti.Who{User: id.Owner, Workspace: "github_repo:github.com/acme/widgets"})[0].Group)
		if len(rows) != 2 {
			t.Fatalf("got %d messages, want 2", len(rows))
		}
		source := rows[0].Source
		if !strings.Contains(source, want) || want == "" && strings.Contains(source, "git\"") || strings.Contains(source, "/home") {
			t.Errorf("%s: got %s, want %q in it, and no path", setting, source, want)
		}
	}
}

// TestRepeatedSentenceIsStoredTwice checks that from its third occurrence in a conversation
// a sentence counts as the client's, and that only a new answer of such a turn is stored.
func TestRepeatedSentenceIsStoredTwice(t *testing.T) {
	t.Parallel()
	w := start(t, t.TempDir(), map[string]string{"ingest.backfill_turns": "10"})
	const sentence, noted = "You must call the tool to complete this request.", "Understood, I will keep that in mind."
	var messages []m
	for _, answer := range []string{"Not yet.", "Still not.", "It has failed.", "It has failed."} {
		messages = append(messages, m{"role": "user", "content": sentence}, m{"role": "assistant", "content": answer})
	}
	w.request(chat(append(messages, m{"role": "user", "content": sentence})...))
	messages = append(messages, m{"role": "user", "content": sentence}, m{"role": "assistant", "content": noted}, m{"role": "user", "content": sentence})
	w.request(chat(messages...))
	const thanks = "Thanks, it works." // the person's: the history is a conversation
	w.request(chat(append(messages, m{"role": "assistant", "content": noted}, m{"role": "user", "content": thanks})...))
	w.delivered(5)
	got, want := w.held(), []string{sentence, "Not yet.", sentence, "Still not.", "It has failed.", noted, thanks, noted}
	sort.Strings(got)
	sort.Strings(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
