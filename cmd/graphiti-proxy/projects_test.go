package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/proxytest"
)

const (
	staging = "Our staging database is called Bluefin."
	asks    = "What is our staging database called?"
	greets  = "Got it. Thanks for the context!"
)

// project returns a new directory.
func project(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	return dir
}

// qwen returns a request as Qwen Code sends it: without a session, and with an answer
// before the person's first message that is always the same.
func qwen(dir string, messages ...m) m { return greeted(greets, dir, messages...) }

func greeted(greeting, dir string, messages ...m) m {
	return chat(append([]m{
		{"role": "system", "content": "You are Qwen Code, an interactive CLI agent developed by Alibaba Group."},
		{"role": "user", "content": []m{{"type": "text", "text": "This is the Qwen Code. We are setting up the context for our chat.\nToday's date is Saturday, November 21, 2026 (formatted according to the user's locale).\nMy operating system is: linux\nI'm currently working in the directory: " + dir + "\nHere is the folder structure of the current working directories:\n\nShowing up to 20 items:\n\n" + dir + "/\n├───app.py\n"}}},
		{"role": "assistant", "content": greeting},
	}, messages...)...)
}

// summarise is a client's instruction for a summary. Such instructions are long.
var summarise = "You are performing a CONTEXT CHECKPOINT COMPACTION. Create a handoff summary." + strings.Repeat(" Be brief, and leave nothing out.", 10)

func replied(text string) m { return m{"role": "assistant", "content": text} }

// see sends a request, and returns the user texts that the model received and the
// X-Graphiti-Memory header.
func (w *world) see(body m, headers ...string) (saw []string, header string) {
	w.t.Helper()
	w.model.Forget()
	_, h := w.exchange("/v1/chat/completions", body, append([]string{"User-Agent", "QwenCode/0.15.10 (linux; x64)"}, headers...)...)
	return seen(w.t, w.model.Requests()[0]), h.Get("X-Graphiti-Memory")
}

func seen(t *testing.T, r *proxytest.Received) (texts []string) {
	t.Helper()
	var body struct {
		Messages []struct {
			Role    string
			Content json.RawMessage
		}
	}
	must(t, json.Unmarshal(r.Body, &body))
	for _, m := range body.Messages {
		var s string
		if m.Role == "user" && json.Unmarshal(m.Content, &s) == nil {
			texts = append(texts, s)
		}
	}
	return texts
}

// keptFor returns the texts stored for a project.
func (w *world) keptFor(dir string) string {
	w.t.Helper()
	_, namer, err := w.remembers().callers.settings(w.app.cfg)
	must(w.t, err)
	group, _ := namer.Group(graphiti.ScopeWorkspace, graphiti.Who{User: "user:josh", Workspace: "path:" + dir})
	var all strings.Builder
	for _, e := range w.heldIn(group) {
		all.WriteString(e.Text + "\n")
	}
	return all.String()
}

// projects starts a proxy that stores a fact of the project one and no fact of the project
// other.
func projects(t *testing.T, settings map[string]string) (w *world, one, other string) {
	t.Helper()
	all := map[string]string{"identity.owner": "user:josh"}
	for k, v := range settings {
		all[k] = v
	}
	w, one, other = start(t, t.TempDir(), all), project(t), project(t)
	w.see(qwen(one, user(staging)))
	w.delivered(1)
	return w, one, other
}

// TestSessionIDInTwoProjects checks that the same session id in two projects shares neither
// blocks nor the notes for a dropped history.
func TestSessionIDInTwoProjects(t *testing.T) {
	t.Parallel()
	w, one, other := projects(t, nil)
	id := []string{"X-Graphiti-Session", "main"}
	first, _ := w.see(qwen(one, user(asks)), id...)
	if !strings.Contains(first[0], "Bluefin") {
		t.Fatalf("got %q, want \"Bluefin\" in it", first)
	}
	w.see(qwen(one, user("We decided to use Postgres for it.")), id...)
	w.delivered(3)
	w.shortTerm(graphiti.SessionScope("session:main", ""), "Postgres")
	if saw, header := w.see(qwen(other, user(asks)), id...); strings.Contains(saw[0], "Bluefin") || strings.Contains(saw[0], "Postgres") {
		t.Errorf("the other: %q, %s", saw, header)
	}
	if saw, header := w.see(qwen(other, user("Go on, please.")), id...); strings.Contains(saw[0], "Postgres") {
		t.Errorf("the other is told of the one's work: %q, %s", saw, header)
	}
	if saw, header := w.see(qwen(one, user("Go on, please.")), id...); !strings.Contains(saw[0], "Postgres") {
		t.Errorf("the one goes on: %q, %s", saw, header)
	}
	if saw, _ := w.see(qwen(one, user(asks)), id...); saw[0] != first[0] {
		t.Errorf("again: %q", saw)
	}
}

// TestWorkspaceHeaderPartsConversations checks that the workspace header separates
// conversations with no other sign of their project.
func TestWorkspaceHeaderPartsConversations(t *testing.T) {
	t.Parallel()
	w := start(t, t.TempDir(), map[string]string{"identity.owner": "user:josh"})
	one, other := []string{"X-Graphiti-Workspace", "one"}, []string{"X-Graphiti-Workspace", "other"}
	w.see(chat(user(staging)), one...)
	w.delivered(1)
	w.model.SetFaults(proxytest.Faults{Status: 500})
	first, _ := w.see(chat(user(asks)), one...)
	if saw, header := w.see(chat(user(asks)), other...); !strings.Contains(first[0], "Bluefin") || strings.Contains(saw[0], "Bluefin") {
		t.Errorf("got %q, %q, %s, want \"Bluefin\" in it, no \"Bluefin\" in it", first, saw, header)
	}
}

// TestSameOpenerOfTwoPeople checks that the same first message of two people in one
// directory begins two conversations.
func TestSameOpenerOfTwoPeople(t *testing.T) {
	t.Parallel()
	w := start(t, t.TempDir(), map[string]string{"identity.mode": "multi", "workspace.remote_paths": "true"})
	dir := project(t)
	ann, bob := []string{"Authorization", "Bearer sk-ann"}, []string{"Authorization", "Bearer sk-bob"}
	w.see(qwen(dir, user(staging)), ann...)
	w.delivered(1)
	w.model.SetFaults(proxytest.Faults{Status: 500})
	first, _ := w.see(qwen(dir, user(asks)), ann...)
	if saw, header := w.see(qwen(dir, user(asks)), bob...); !strings.Contains(first[0], "Bluefin") || strings.Contains(saw[0], "Bluefin") {
		t.Errorf("got %q, %q, %s, want \"Bluefin\" in it, no \"Bluefin\" in it", first, saw, header)
	}
}
