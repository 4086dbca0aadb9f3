package dialect_test

import (
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect/chat"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect/gemini"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect/messages"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect/responses"
)

// TestWorksOnFiles: the shapes of tools, as clients and frameworks have them.
func TestWorksOnFiles(t *testing.T) {
	const said = `"role":"user","content":"hi"`
	schema := func(params string) string { return `{"type":"object","properties":{` + params + `}}` }
	text := func(names ...string) (params string) {
		for i, n := range names {
			if i > 0 {
				params += ","
			}
			params += `"` + n + `":{"type":"string"}`
		}
		return params
	}
	for _, tc := range []struct {
		name, params string
		want         bool
	}{
		{"bash", text("command"), true},
		{"Bash", text("command", "description", "timeout"), true},
		{"exec_command", text("cmd", "workdir"), true},
		{"agent_run_shell_command", text("command", "cwd", "timeout"), true},
		{"run_in_terminal", text("commandLine"), true},
		{"str_replace_based_edit_tool", text("command", "path", "old_str", "new_str"), true},
		{"Write", text("file_path", "content"), true},
		{"edit_file", text("TargetFile", "CodeEdit"), true},
		{"replace_in_file", text("file_path", "replacements"), true},
		{"delete_file", text("file_path"), true},
		{"move", text("source", "path"), true},
		{"notebook_edit", text("notebook_path", "new_source"), true},
		{"apply_patch", text("input"), true},
		{"edits", `"files":{"type":"array","items":{"type":"object","properties":{` + text("path", "new_text") + `}}}`, true},
		{"read_file", text("file_path", "limit"), false},
		{"list_files", text("directory"), false},
		{"grep", text("pattern", "path"), false},
		{"web_fetch", text("url", "prompt"), false},
		{"task", text("description", "prompt", "subagent_type", "command"), false},
		{"todo_write", text("todos"), false},
		{"weather", text("city"), false},
		{"send_mail", text("to", "subject", "text"), false},
		{"run_sql", text("query"), false},
		{"final_result", text("content"), false},
		{"no_parameters", "", false},
	} {
		s := schema(tc.params)
		for api, body := range map[string]string{
			"chat":      `{"messages":[{` + said + `}],"tools":[{"type":"function","function":{"name":"` + tc.name + `","parameters":` + s + `}}]}`,
			"messages":  `{"tools":[{"name":"` + tc.name + `","input_schema":` + s + `}],"messages":[{` + said + `}]}`,
			"responses": `{"input":[{` + said + `}],"tools":[{"type":"namespace","name":"x","tools":[{"type":"function","name":"` + tc.name + `","parameters":` + s + `}]}]}`,
			"gemini":    `{"contents":[{"role":"user","parts":[{"text":"hi"}]}],"tools":[{"functionDeclarations":[{"name":"` + tc.name + `","parametersJsonSchema":` + s + `}]}]}`,
		} {
			if got := worksOnFiles(t, api, body); got != tc.want {
				t.Errorf("%s, tool %s: got %v, want %v", api, tc.name, got, tc.want)
			}
		}
	}
}

// TestWorksOnFiles_BuiltIn: tools of the providers, which have no parameters.
func TestWorksOnFiles_BuiltIn(t *testing.T) {
	for tool, want := range map[string]bool{
		`{"type":"bash_20250124","name":"bash"}`:                               true,
		`{"type":"text_editor_20250728","name":"str_replace_based_edit_tool"}`: true,
		`{"type":"local_shell"}`:                                               true,
		`{"type":"custom","name":"apply_patch","format":{"type":"grammar"}}`:   true,
		`{"type":"shell","environment":{"type":"local"}}`:                      true,
		`{"type":"shell","environment":{"type":"container_auto"}}`:             false,
		`{"type":"web_search_20250305","name":"web_search"}`:                   false,
		`{"type":"code_interpreter","container":{"type":"auto"}}`:              false,
		`{"type":"custom","name":"say"}`:                                       false,
		`"bash"`:                                                               false,
	} {
		if got := worksOnFiles(t, "messages", `{"tools":[`+tool+`],"messages":[{"role":"user","content":"hi"}]}`); got != want {
			t.Errorf("%s: got %v, want %v", tool, got, want)
		}
	}
}

func worksOnFiles(t *testing.T, api, body string) bool {
	t.Helper()
	d := map[string]dialect.Dialect{"chat": chat.Dialect{}, "messages": messages.Dialect{}, "responses": responses.Dialect{}, "gemini": gemini.Dialect{}}[api]
	var c dialect.Conversation
	if !d.Parse([]byte(body), &c) {
		t.Fatalf("%s: not understood: %s", api, body)
	}
	return c.WorksOnFiles()
}
