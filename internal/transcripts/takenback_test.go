package transcripts

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/internal/helptest"
)

// TestRead_TakenBack checks that only the current branch of a conversation counts, in the forms
// of each client, also in JSON with blanks.
func TestRead_TakenBack(t *testing.T) {
	t.Parallel()
	node := func(form string) func(id, parent, role, words string) string {
		return func(id, parent, role, words string) string {
			of := "null"
			if parent != "" {
				of = `"` + parent + `"`
			}
			return strings.NewReplacer("ID", id, "PARENT", of, "ROLE", role, "WORDS", words).Replace(form) + "\n"
		}
	}
	claude := node(`{"parentUuid": PARENT, "type": "ROLE", "uuid": "ID", "sessionId": "s", "cwd": "/d", "message": {"role": "ROLE", "id": "msg_ID", "content": [{"type": "text", "text": "WORDS"}]}}`)
	pi := node(`{"type": "message", "id": "ID", "parentId": PARENT, "message": {"role": "ROLE", "content": [{"type": "text", "text": "WORDS"}]}}`)
	event := func(kind, words string) string {
		return `{"type": "event_msg", "payload": {"type": "` + kind + `", "message": "` + words + `"}}` + "\n"
	}
	gem := func(id, kind, words string) string {
		return `{"id": "` + id + `", "type": "` + kind + `", "content": "` + words + `"}` + "\n"
	}
	kimi := func(words string) string {
		return `{"type": "turn.prompt", "promptId": "` + words + `", "origin": {"kind": "user"}, "input": [{"type": "text", "text": "` + words + `"}]}
{"type": "agent.message.appended", "message": {"meta": {"source": "llm"}, "message": {"content": [{"type": "text", "text": "Noted."}]}}}` + "\n"
	}
	copilot := func(id, kind, words string) string {
		return `{"type": "` + kind + `", "id": "` + id + `", "data": {"messageId": "` + id + `", "content": "` + words + `"}}` + "\n"
	}
	const meta = `{"type": "session_meta", "payload": {"id": "s", "cwd": "/d"}}` + "\n"
	first, second := claude("1", "", "user", "Lake.")+claude("2", "1", "assistant", "Noted."), claude("3", "2", "user", "River.")+claude("4", "3", "assistant", "Noted.")
	for _, c := range []struct {
		name, path, text, want string
		back                   int
	}{
		{"Claude Code", ".claude/projects/x/1.jsonl", first + second, "Lake. River.", 0},
		{"Claude Code: /rewind", ".claude/projects/x/1.jsonl", first + second + claude("5", "4", "user", "Hill.") + claude("6", "5", "assistant", "Noted.") + claude("7", "2", "user", "Bay.") + claude("8", "7", "assistant", "Noted."), "Lake. Bay.", 2},
		{"Claude Code: /rewind to the start", ".claude/projects/x/1.jsonl", first + second + claude("7", "", "user", "Bay.") + claude("8", "7", "assistant", "Noted."), "Bay.", 2},
		{"Claude Code: other records of a turn", ".claude/projects/x/1.jsonl", first + claude("2b", "2", "system", "") + second, "Lake. River.", 0},
		{"Claude Code: no tree", ".claude/projects/x/1.jsonl", claude("1", "", "user", "Lake.") + claude("2", "", "assistant", "Noted.") + claude("3", "", "user", "River.") + claude("4", "", "assistant", "Noted."), "Lake. River.", 0},
		{"Codex: backtrack", ".codex/sessions/2026/11/21/rollout-1.jsonl", meta + event("user_message", "Lake.") + event("agent_message", "Noted.") + event("user_message", "River.") + event("agent_message", "Noted.") + event("user_message", "Hill.") + event("agent_message", "Noted.") +
			`{"type": "event_msg", "payload": {"type": "thread_rolled_back", "num_turns": 2}}` + "\n" + event("user_message", "Bay.") + event("agent_message", "Noted."), "Lake. Bay.", 2},
		{"pi", ".pi/agent/sessions/x/1.jsonl", `{"type": "session", "id": "s", "cwd": "/d"}` + "\n" + pi("1", "", "user", "Lake.") + pi("2", "1", "assistant", "Noted.") + pi("3", "2", "user", "River.") + pi("4", "3", "assistant", "Noted.") + pi("5", "2", "user", "Bay.") + pi("6", "5", "assistant", "Noted."), "Lake. Bay.", 1},
		{"Gemini CLI", ".gemini/tmp/p/chats/session-1.jsonl", `{"sessionId": "s", "kind": "main"}` + "\n" + gem("1", "user", "Lake.") + gem("2", "gemini", "Noted.") + gem("3", "user", "River.") + gem("4", "gemini", "Noted.") + `{"$rewindTo": "3"}` + "\n" + gem("5", "user", "Bay.") + gem("6", "gemini", "Noted."), "Lake. Bay.", 1},
		{"Kimi Code", ".kimi-code/sessions/w/s/agents/main/wire.jsonl", kimi("Lake.") + kimi("River.") + kimi("Hill.") + `{"type": "context.undo", "count": 2}` + "\n" + kimi("Bay."), "Lake. Bay.", 2},
		{"Copilot CLI", ".copilot/session-state/s/events.jsonl", copilot("1", "user.message", "Lake.") + copilot("2", "assistant.message", "Noted.") + copilot("3", "user.message", "River.") + copilot("4", "assistant.message", "Noted.") +
			`{"type": "session.snapshot_rewind", "id": "5", "data": {"upToEventId": "3"}}` + "\n" + copilot("6", "user.message", "Bay.") + copilot("7", "assistant.message", "Noted."), "Lake. Bay.", 1},
		{"opencode", ".local/share/opencode/opencode.db", "", "Lake.", 1},
	} {
		home := Home{Dir: t.TempDir(), Env: func(string) string { return "" }}
		path := filepath.Join(home.Dir, filepath.FromSlash(c.path))
		must(t, os.MkdirAll(filepath.Dir(path), 0o700))
		if c.text == "" {
			openCodeWithRevert(t, path)
		} else if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(c.path, ".kimi") {
			must(t, os.WriteFile(filepath.Join(home.Dir, ".kimi-code/sessions/w/s/state.json"), []byte(`{"id": "s", "cwd": "/d"}`), 0o600))
		}
		var got []string
		back := 0
		for _, found := range home.Read(func(int) {}) {
			back += found.TakenBack
			for _, turn := range found.Turns {
				got = append(got, turn.Words)
			}
		}
		if s := strings.Join(got, " "); s != c.want || back != c.back {
			t.Errorf("%s: got %q and %d taken back, want %q and %d", c.name, s, back, c.want, c.back)
		}
	}
}

// openCodeWithRevert makes a database of opencode in which the second of two turns is reverted.
func openCodeWithRevert(t *testing.T, path string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	must(t, err)
	defer db.Close()
	statements := []string{
		"CREATE TABLE session (id text, parent_id text, directory text, revert text, time_created integer)",
		"CREATE TABLE message (id text, session_id text, time_created integer, data text)",
		"CREATE TABLE part (id text, message_id text, data text)",
		`INSERT INTO session VALUES ('s', NULL, '/d', '{"messageID":"msg_3"}', 1)`,
	}
	for i, words := range []string{"Lake.", "Noted.", "River.", "Noted."} {
		statements = append(statements,
			fmt.Sprintf(`INSERT INTO message VALUES ('msg_%d', 's', %d, '{"role":"%s","time":{"created":%d}}')`, i+1, i, []string{"user", "assistant"}[i%2], i+1),
			fmt.Sprintf(`INSERT INTO part VALUES ('prt_%d', 'msg_%d', '{"type":"text","text":"%s"}')`, i+1, i+1, words))
	}
	for _, statement := range statements {
		must(t, helptest.ErrorOf(db.ExecContext(t.Context(), statement)))
	}
}
