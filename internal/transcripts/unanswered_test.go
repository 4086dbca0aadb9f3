package transcripts

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRead_Unanswered checks which messages without an answer become turns: those
// followed by another message of the person, in the forms of each client.
func TestRead_Unanswered(t *testing.T) {
	t.Parallel()
	const (
		claude = ".claude/projects/x/1.jsonl"
		codex  = ".codex/sessions/2026/11/21/rollout-1.jsonl"
		meta   = `{"type":"session_meta","timestamp":"2026-11-21T10:00:00Z","payload":{"id":"s","cwd":"/d"}}` + "\n"
	)
	user := func(words string) string {
		return `{"type":"user","uuid":"` + words + `","sessionId":"s","cwd":"/d","message":{"role":"user","content":"` + words + `"}}` + "\n"
	}
	called := `{"type":"assistant","message":{"id":"msg_1","content":[{"type":"tool_use","id":"toolu_1"}]}}` + "\n"
	answered := `{"type":"assistant","message":{"id":"msg_2","content":[{"type":"text","text":"Noted."}]}}` + "\n"
	queued := func(rest string) string {
		return `{"type":"attachment","uuid":"q","attachment":{"type":"queued_command",` + rest + "}}\n"
	}
	item := func(kind, turn, words string) string {
		return `{"type":"event_msg","payload":{"type":"item_completed","turn_id":"` + turn + `","item":{"type":"` + kind + `","content":[{"type":"Text","text":"` + words + `"}]}}}` + "\n"
	}
	response := func(role, words string) string {
		return `{"type":"response_item","payload":{"type":"message","role":"` + role + `","content":[{"type":"text","text":"` + words + `"}]}}` + "\n"
	}
	for _, c := range []struct{ name, path, text, want string }{
		{"Claude Code: typed while it works", claude, user("Build.") + called + queued(`"prompt":"Use ochre.","commandMode":"prompt"`) + answered, "Build.= Use ochre.=Noted."},
		{"Claude Code: typed as parts", claude, user("Build.") + called + queued(`"prompt":[{"type":"text","text":"Use ochre."}]`) + answered, "Build.= Use ochre.=Noted."},
		{"Claude Code: a task's end", claude, user("Build.") + called + queued(`"prompt":"A task ended.","commandMode":"task-notification"`) + answered, "Build.=Noted."},
		{"Claude Code: stopped", claude, user("Build.") + called + user("Use ochre.") + answered, "Build.= Use ochre.=Noted."},
		{"Claude Code: typed again", claude, user("Build.") + user("Build. Use ochre.") + answered, "Build. Use ochre.=Noted."},
		{"Claude Code: a command to the client", claude, user("/model") + user("Use ochre.") + answered, "Use ochre.=Noted."},
		{"Claude Code: the last one", claude, user("Build.") + answered + user("Use ochre."), "Build.=Noted."},
		{"Claude Code: a local server's ids", claude, user("Build.") + strings.ReplaceAll(called+answered, "msg_2", "msg_1"), "Build.=Noted."},
		{"Codex: steered", codex, meta + item("UserMessage", "t", "Build.") + item("UserMessage", "t", "Use ochre.") + item("AgentMessage", "t", "Noted."), "Build.= Use ochre.=Noted."},
		{"Codex: without events", codex, meta + response("user", "<environment_context>x</environment_context>") + response("user", "Build.") + response("assistant", "Noted."), "Build.=Noted."},
		{"Codex: with both", codex, meta + response("user", "Build.") + item("UserMessage", "t", "Build.") + item("AgentMessage", "t", "Noted.") + response("assistant", "Noted."), "Build.=Noted."},
		{"Gemini CLI: of an earlier version", ".gemini/tmp/p/chats/session-1.json", `{"sessionId":"s","messages":[{"id":"1","type":"user","content":"Build."},{"id":"2","type":"gemini","content":"Noted."}]}`, "Build.=Noted."},
	} {
		home := Home{Dir: t.TempDir(), Env: func(string) string { return "" }}
		path := filepath.Join(home.Dir, filepath.FromSlash(c.path))
		must(t, os.MkdirAll(filepath.Dir(path), 0o700))
		must(t, os.WriteFile(path, []byte(c.text), 0o600))
		var got []string
		for _, found := range home.Read(func(int) {}) {
			for _, turn := range found.Turns {
				got = append(got, turn.Words+"="+turn.Answer)
			}
		}
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("%s: got %q, want %q", c.name, s, c.want)
		}
	}
}
