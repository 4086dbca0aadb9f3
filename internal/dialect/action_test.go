package dialect_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
)

// TestAction has the shapes of the tools of known clients, and of some unknown ones.
func TestAction(t *testing.T) {
	run := func(c string) dialect.Action { return dialect.Action{Commands: []string{c}} }
	change := func(f ...string) dialect.Action { return dialect.Action{Changed: f} }
	list := func(tasks ...dialect.Task) dialect.Action { return dialect.Action{Tasks: tasks, IsList: true} }
	two := []dialect.Task{{Text: "Write it", Done: true}, {Text: "Test it"}}
	for name, tc := range map[string]struct {
		tool, arguments string
		want            dialect.Action
	}{
		"Claude Code, command":  {"Bash", `{"command":"make","description":"builds"}`, run("make")},
		"Claude Code, edit":     {"Edit", `{"file_path":"/p/a.go","old_string":"a","new_string":"b","replace_all":false}`, change("/p/a.go")},
		"Claude Code, write":    {"Write", `{"file_path":"/p/a.go","content":"a"}`, change("/p/a.go")},
		"Claude Code, read":     {"Read", `{"file_path":"/p/a.go","limit":5}`, dialect.Action{}},
		"Claude Code, grep":     {"Grep", `{"pattern":"x","path":"src","output_mode":"content"}`, dialect.Action{}},
		"Claude Code, todos":    {"TodoWrite", `{"todos":[{"content":"Write it","status":"completed","activeForm":"Writing"},{"content":"Test it","status":"pending"}]}`, list(two...)},
		"Claude Code, subagent": {"Task", `{"description":"d","prompt":"edit the file","subagent_type":"x"}`, dialect.Action{}},
		"Claude Code, fetch":    {"WebFetch", `{"url":"https://x","prompt":"p"}`, dialect.Action{}},
		"Codex, command":        {"exec_command", `{"cmd":"make","workdir":"/p"}`, run("make")},
		"Codex, plan":           {"update_plan", `{"plan":[{"step":"Write it","status":"completed"},{"status":"pending","step":"Test it"}]}`, list(two...)},
		"Codex, patch":          {"apply_patch", "*** Begin Patch\n*** Update File: src/a.go\n@@\n-a\n+b\n*** Add File: b.go\n+x\n*** End Patch", change("src/a.go", "b.go")},
		"local shell":           {"", `{"type":"exec","command":["bash","-lc","make all"],"working_directory":"/p"}`, run("make all")},
		"a list of arguments":   {"shell", `{"command":["ls","-la"]}`, run("ls -la")},
		"opencode, edit":        {"edit", `{"filePath":"a.go","oldString":"a","newString":"b"}`, change("a.go")},
		"opencode, todos":       {"todowrite", `{"todos":[{"content":"Write it","status":"completed","priority":"high"},{"content":"Test it","status":"in_progress"}]}`, list(two...)},
		"Copilot, create":       {"create", `{"path":"a.go","file_text":"x"}`, change("a.go")},
		"Copilot, view":         {"view", `{"path":"a.go","view_range":[1,5]}`, dialect.Action{}},
		"an editor, view":       {"str_replace_editor", `{"command":"view","path":"a.go"}`, dialect.Action{}},
		"an editor, insert":     {"str_replace_editor", `{"command":"insert","path":"a.go","insert_line":1}`, change("a.go")},
		"Gemini CLI, command":   {"run_shell_command", `{"command":"make","dir_path":"src"}`, run("make")},
		"Gemini CLI, replace":   {"replace", `{"file_path":"a.go","instruction":"i","old_string":"a","new_string":"b"}`, change("a.go")},
		"Gemini CLI, todos":     {"write_todos", `{"todos":[{"description":"Write it","status":"completed"},{"description":"Test it","status":"in_progress"}]}`, list(two...)},
		"Qwen Code, command":    {"run_shell_command", `{"command":"make","is_background":false,"directory":"/p"}`, run("make")},
		"Kimi Code, todos":      {"SetTodoList", `{"todos":[{"title":"Write it","status":"done"},{"title":"Test it","status":"pending"}]}`, list(two...)},
		"Cline, commands":       {"run_commands", `{"commands":["make","make test"]}`, dialect.Action{Commands: []string{"make", "make test"}}},
		"Cline, edit":           {"replace_in_files", `{"files":[{"path":"a.go","old_text":"a","new_text":"b"}]}`, change("a.go")},
		"Cline, read":           {"read_files", `{"files":[{"path":"a.go"},{"path":"b.go"}]}`, dialect.Action{}},
		"Continue, checklist":   {"checklist", `{"checklist":"- [x] Write it\n- [ ] Test it"}`, list(two...)},
		"a deletion":            {"delete_file", `{"target_file":"a.go"}`, change("a.go")},
		"a move":                {"move_path", `{"source_path":"a.go","destination_path":"b.go"}`, change("a.go", "b.go")},
		"no JSON":               {"x", `rm -rf`, dialect.Action{}},
		"nothing":               {"", ``, dialect.Action{}},
	} {
		c := dialect.Call{Name: tc.tool, Arguments: tc.arguments}
		if diff := cmp.Diff(tc.want, c.Action()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
