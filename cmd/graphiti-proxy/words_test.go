package main

import (
	"strings"
	"testing"
)

// TestToolsDescribeNoFiles checks that the files of a turn come from the calls of its
// tools, and not from the descriptions of the tools.
func TestToolsDescribeNoFiles(t *testing.T) {
	t.Parallel()
	w := start(t, t.TempDir(), map[string]string{"identity.owner": "user:josh"})
	project := []string{"User-Agent", "test/1", "X-Graphiti-Workspace", widgets, "X-Graphiti-Session", "one"}
	body := chat(user("Look at the parser."), m{"role": "assistant", "content": nil, "tool_calls": []m{{"id": "a", "type": "function", "function": m{"name": "read", "arguments": `{"path":"src/parser.go"}`}}}},
		m{"role": "tool", "tool_call_id": "a", "content": "package parser"})
	body["tools"] = []m{{"type": "function", "function": m{"name": "read", "description": `Reads a file: {"path": "src/example.ts"}`}}}
	w.see(body, project...)
	w.remembered("Look at the parser.")
	saw, _ := w.see(chat(user("Go on.")), append(project[:4:4], "X-Graphiti-Session", "two")...)
	if all := strings.Join(saw, "\n"); strings.Contains(all, "example.ts") {
		t.Errorf("the model was told %q", all)
	}
	if group := w.get("/metrics"); strings.Contains(group, "example.ts") {
		t.Error("a metric names a file")
	}
}
