package dialect_test

import (
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect/chat"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect/gemini"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect/messages"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect/responses"
)

// TestUnknownTools: the shapes of tools, as clients and frameworks have them. A tool that takes a
// program is unknown, in whatever words.
func TestUnknownTools(t *testing.T) {
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
		{"execute", text("language", "code"), true},
		{"python_repl", text("query"), true},
		{"terminal", text("input"), true},
		{"PowerShell", text("scriptBlock"), true},
		{"shell", text("args"), true},
		{"los", text("befehl"), true},
		{"run", `"argv":{"type":"array","items":{"type":"string"}}`, true},
		{"run", `"argv":{"type":"array"}`, true},
		{"run", `"steps":{"type":"array","items":{"type":"object","properties":{` + text("do") + `}}}`, true},
		{"run", `"options":{"type":"object"}`, true},
		{"run", `"options":{"type":"object","properties":{"n":{"type":"integer"}},"additionalProperties":{"type":"string"}}`, true},
		{"run", `"what":{}`, true},
		{"run", `"what":true`, true},
		{"run", `"what":{"$ref":"#/$defs/what"}`, true},
		{"run", `"what":{"anyOf":[{"type":"null"},{"type":"string"}]}`, true},
		{"run", `"what":{"type":["string","null"]}`, true},
		{"run", `"what":{"type":"string","maxLength":80}`, true},
		{"run_sql", text("query"), true},
		{"read_file", text("file_path", "limit"), true},
		{"task", text("description", "prompt"), true},
		{"send_mail", text("to", "subject", "text"), true},
		{"web_search", text("command"), true},
		{"web_shell", text("query"), true},
		{"web_search", text("query"), false},
		{"google_search", `"queries":{"type":"array","items":{"type":"string"}}`, false},
		{"get_current_weather", text("city") + `,"unit":{"type":"string","enum":["C","F"]}`, false},
		{"getWeather", `"location":{"anyOf":[{"type":"string"},{"type":"null"}]}`, false},
		{"set_lamp", `"on":{"type":"boolean"},"level":{"type":"integer"},"room":{"enum":["hall","attic"]},"hours":{"type":["number","null"]}`, false},
		{"set_lamps", `"all":{"type":"array","items":{"type":"object","properties":{"room":{"const":"hall"},"on":{"type":"boolean"}}}}`, false},
		{"no_parameters", "", false},
	} {
		s := schema(tc.params)
		for api, body := range map[string]string{
			"chat":      `{"messages":[{` + said + `}],"tools":[{"type":"function","function":{"name":"` + tc.name + `","parameters":` + s + `}}]}`,
			"messages":  `{"tools":[{"name":"` + tc.name + `","input_schema":` + s + `}],"messages":[{` + said + `}]}`,
			"responses": `{"input":[{` + said + `}],"tools":[{"type":"namespace","name":"x","tools":[{"type":"function","name":"` + tc.name + `","parameters":` + s + `}]}]}`,
			"gemini":    `{"contents":[{"role":"user","parts":[{"text":"hi"}]}],"tools":[{"functionDeclarations":[{"name":"` + tc.name + `","parametersJsonSchema":` + s + `}]}]}`,
		} {
			if got := unknownTools(t, api, body); got != tc.want {
				t.Errorf("%s, tool %s(%s): got %v, want %v", api, tc.name, tc.params, got, tc.want)
			}
		}
		old := `{"messages":[{` + said + `}],"functions":[{"name":"` + tc.name + `","parameters":` + s + `}]}`
		if got := unknownTools(t, "chat", old); got != tc.want {
			t.Errorf("function %s(%s): got %v, want %v", tc.name, tc.params, got, tc.want)
		}
	}
}

// TestUnknownTools_OfProviders: tools without parameters, most of them the providers' own.
func TestUnknownTools_OfProviders(t *testing.T) {
	for tool, want := range map[string]bool{
		`{"type":"bash_20250124","name":"bash"}`:                               true,
		`{"type":"text_editor_20250728","name":"str_replace_based_edit_tool"}`: true,
		`{"type":"computer_20250124","name":"computer"}`:                       true,
		`{"type":"memory_20250818","name":"memory"}`:                           true,
		`{"type":"mcp","server_label":"d","server_url":"https://x.example"}`:   false,
		`{"type":"local_shell"}`:                                               true,
		`{"type":"custom","name":"apply_patch","format":{"type":"grammar"}}`:   true,
		`{"type":"custom","custom":{"name":"say"}}`:                            true,
		`{"type":"shell","environment":{"type":"local"}}`:                      true,
		`{"type":"shell","environment":{"type":"container_auto"}}`:             false,
		`{"type":"web_search_20250305","name":"web_search"}`:                   false,
		`{"type":"web_search_preview"}`:                                        false,
		`{"type":"code_interpreter","container":{"type":"auto"}}`:              false,
		`{"type":"custom","name":"say"}`:                                       true,
		`{"type":"function","name":"say"}`:                                     false,
		`{"functionDeclarations":[{"name":"say"}],"googleSearch":{}}`:          false,
		`{"functionDeclarations":[{"name":"say"}],"computerUse":{}}`:           true,
		`"bash"`: true,
	} {
		if got := unknownTools(t, "messages", `{"tools":[`+tool+`],"messages":[{"role":"user","content":"hi"}]}`); got != want {
			t.Errorf("%s: got %v, want %v", tool, got, want)
		}
		if got := unknownTools(t, "messages", `{"tools":[{"type":"web_search_20250305","name":"web_search"},`+tool+`],"messages":[{"role":"user","content":"hi"}]}`); got != want {
			t.Errorf("%s beside another: got %v, want %v", tool, got, want)
		}
	}
}

// TestUnknownTools_OfOpenWebUI checks that Open WebUI's own tools count as harmless in its requests
// only, and that its code interpreter and other people's tools do not.
func TestUnknownTools_OfOpenWebUI(t *testing.T) {
	for name, want := range map[string]bool{"view_note": false, "ask_user": false, "execute_code": true, "run_command": true} {
		var c dialect.Conversation
		body := `{"messages":[{"role":"user","content":"hi"}],"tools":[{"type":"function","function":{"name":"` + name + `","parameters":{"type":"object","properties":{"id":{"type":"string"}}}}}]}`
		if !(chat.Dialect{}).Parse([]byte(body), &c) {
			t.Fatalf("not understood: %s", body)
		}
		if got := c.UnknownTools(true); got != want {
			t.Errorf("%s of Open WebUI: got %v, want %v", name, got, want)
		}
		if !c.UnknownTools(false) {
			t.Errorf("%s of another client is known", name)
		}
	}
}

func unknownTools(t *testing.T, api, body string) bool {
	t.Helper()
	d := map[string]dialect.Dialect{"chat": chat.Dialect{}, "messages": messages.Dialect{}, "responses": responses.Dialect{}, "gemini": gemini.Dialect{}}[api]
	var c dialect.Conversation
	if !d.Parse([]byte(body), &c) {
		t.Fatalf("%s: not understood: %s", api, body)
	}
	return c.UnknownTools(false)
}
