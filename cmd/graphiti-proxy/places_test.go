package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/internal/helptest"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/workspace"
)

// checkout returns a directory with the files of a clone of acme/widgets that the proxy
// reads, and empty files with the given names.
func checkout(t *testing.T, files ...string) (dir string) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	must(t, os.Mkdir(filepath.Join(dir, ".git"), 0o700))
	for name, text := range map[string]string{
		".git/config": "[remote \"origin\"]\n\turl = https://github.com/acme/widgets.git\n",
		".git/HEAD":   "ref: refs/heads/main\n",
	} {
		writeFile(t, filepath.Join(dir, name), text)
	}
	for _, name := range files {
		writeFile(t, filepath.Join(dir, name), "")
	}
	return dir
}

// sessionStart describes the first requests of a client in a session: a request for a
// title, then a turn.
type sessionStart struct {
	client  string
	path    string
	headers []string
	title   func(said string) m
	turn    func(dir, said string) m
}

// asRecorded lists clients that first request a title, in the session of the conversation
// and without a directory.
var asRecorded = []sessionStart{
	{
		client:  "opencode 1.18",
		path:    "/v1/chat/completions",
		headers: []string{"User-Agent", "opencode/1.18.33 ai-sdk/provider-utils/4.0.23 runtime/bun/1.3.14", "X-Session-Affinity", "ses_e048776adffeJLVywTK2jw7fdK", "X-Session-Id", "ses_e048776adffeJLVywTK2jw7fdK"},
		title: func(said string) m {
			return chat(m{"role": "system", "content": "You are a title generator. You output ONLY a thread title. Nothing else.\n\n<task>\nGenerate a brief title"},
				user("Generate a title for this conversation:\n"), user(`"`+said+`"`))
		},
		turn: func(dir, said string) m {
			body := chat(m{"role": "system", "content": "You are opencode, an interactive CLI tool.\nuser: what command should I run to list files in the current directory?\n<env>\n  Working directory: " + dir + "\n  Workspace root folder: " + dir + "\n  Is directory a git repo: yes\n</env>"},
				user(`"`+said+`"`))
			body["tools"] = []m{{"type": "function", "function": m{"name": "bash", "parameters": m{"type": "object"}}}}
			return body
		},
	},
	{
		client:  "Claude Code 2.1, TUI",
		path:    "/v1/messages?beta=true",
		headers: []string{"User-Agent", "claude-cli/2.1.329 (external, cli)", "Anthropic-Version", "2023-06-01", "X-Claude-Code-Session-Id", "28fa7aa0-fcd0-445c-a7bc-629bf3763962"},
		title: func(said string) m {
			return m{"model": "m", "max_tokens": 128000, "tools": []m{}, "system": []m{
				{"type": "text", "text": "x-anthropic-billing-header: cc_version=2.1.329.f35; cc_entrypoint=cli;"},
				{"type": "text", "text": "You are Claude Code, Anthropic's official CLI for Claude."},
				{"type": "text", "text": "You are naming a coding session so the user can pick it out of a long list of sessions."},
			}, "messages": []m{{"role": "user", "content": []m{{"type": "text", "text": "<session>\n" + said + "\n</session>\n\nWrite the title in the predominant language of the session."}}}}}
		},
		turn: func(dir, said string) m {
			return m{"model": "m", "max_tokens": 128000, "tools": []m{{"name": "Bash", "input_schema": m{"type": "object"}}}, "system": []m{
				{"type": "text", "text": "x-anthropic-billing-header: cc_version=2.1.329.b08; cc_entrypoint=cli;"},
				{"type": "text", "text": "You are Claude Code, Anthropic's official CLI for Claude.", "cache_control": m{"type": "ephemeral"}},
			}, "messages": []m{
				{"role": "user", "content": []m{{"type": "text", "text": "<system-reminder>\nCurrent branch: master\n</system-reminder>"}, {"type": "text", "text": said}}},
				{"role": "system", "content": []m{{"type": "text", "text": "# Environment\nYou have been invoked in the following environment: \n - Primary working directory: " + dir + "\n - Is a git repository: true\n"}}},
			}}
		},
	},
}

// groups returns every group that has ever stored a turn.
func (w *world) groups() (groups []string) {
	w.t.Helper()
	list, err := w.remembers().pipeline.Owned(context.Background(), "")
	must(w.t, err)
	for _, g := range list {
		groups = append(groups, g.Group)
	}
	return groups
}

// TestDirectoryThatIsReadLate checks that a request has no memory while the file system hangs.
// Once the directory has been read, the next request stores both turns for their project, and
// none if the project has no memory.
func TestDirectoryThatIsReadLate(t *testing.T) {
	t.Parallel()
	const said = "The deploy key is rotated on Mondays."
	client := asRecorded[0]
	for _, tc := range []struct {
		name    string
		files   []string
		gone    bool
		ignored string // prefix of the directory in workspace.ignored
		want    string
	}{
		{name: "a project", want: "workspace_github_repo_github_com_acme_widgets-27bf01bfae610991"},
		{name: "an ignored project", files: []string{".graphiti-proxy-ignore"}, want: "user_josh"},
		{name: "a project ignored by its path", ignored: "path:", want: "user_josh"},
		{name: "a directory that is not there", gone: true, want: "user_josh"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := checkout(t, tc.files...)
			if tc.gone {
				dir = filepath.Join(dir, "nowhere")
			}
			settings := map[string]string{"identity.owner": "user:josh", "identity.group_ids": "raw", "recall.timeout": "2s"}
			if tc.ignored != "" {
				settings["workspace.ignored"] = tc.ignored + dir
			}
			data := t.TempDir()
			w := start(t, data, settings)
			places, answers := w.remembers().serving().Identity.Places, make(chan struct{})
			read := places.Read
			places.Read = func(dir string) workspace.Repo { <-answers; return read(dir) }
			body := client.turn(dir, said)
			_, h := w.exchange(client.path, body, client.headers...)
			if got := h.Get("X-Graphiti-Memory"); !strings.HasPrefix(got, "off;") || !strings.HasSuffix(got, "reason=place") {
				t.Errorf("got %s, want no memory without the place", got)
			}
			if clients := w.app.status(t.Context(), false).Clients; len(clients) > 0 {
				t.Errorf("the status complains of %+v", clients)
			}
			close(answers)
			body["messages"] = append(body["messages"].([]m), m{"role": "assistant", "content": "I will remember that."}, user("And when is the audit?")) //nolint:forcetypeassert // see chat
			// A busy machine reads for longer than a request waits.
			helptest.Until(t, "the place", func() bool {
				_, h = w.exchange(client.path, body, client.headers...)
				return tc.want == "user_josh" || !strings.HasPrefix(h.Get("X-Graphiti-Memory"), "off;")
			})
			if tc.want == "user_josh" {
				w.say(fact) // this turn is stored
				w.delivered(1)
			} else {
				w.delivered(2)
			}
			w.stop() // writes captured turns to the ledger
			if got := start(t, data, settings).groups(); !slices.Equal(got, []string{tc.want}) {
				t.Errorf("kept in %v, want %s", got, tc.want)
			}
		})
	}
}
