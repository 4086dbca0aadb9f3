package main

import (
	"maps"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/internal/helptest"
)

// TestSelectorsSelect checks that each operation obeys each field of its selector: the answers for
// two values differ, or the operation refuses the field.
func TestSelectorsSelect(t *testing.T) {
	t.Parallel()
	w := start(t, t.TempDir(), nil)
	headers := func(workspace, session, agent string) []string {
		return []string{"X-Graphiti-Workspace", workspace, "X-Graphiti-Session", session, "X-Graphiti-Agent", agent}
	}
	tools := func(body m) m {
		body["tools"] = []m{{"type": "function", "function": m{"name": "bash", "parameters": m{"type": "object", "properties": m{"command": m{"type": "string"}}}}}}
		return body
	}
	w.request(chat(user("Our vault is called Quetzal, and always answer in French."), replied("Noted."), user("The vault of the wharf is called Falcon.")), headers(widgets, "one", "ava")...)
	w.request(chat(user("Remember that I always want squash merges.\n\nThe log:\n\nOur vault is called Heron.")), headers("gadgets", "two", "bo")...)
	w.request(chat(user("Our own vault is called Osprey.")), "X-Graphiti-Session", "three")
	w.request(tools(chat(user("The vault of this talk is called Linnet."))), "X-Graphiti-Session", "one") // its memory is the session's
	w.request(tools(chat(user("The vault of that talk is called Siskin."))), "X-Graphiti-Session", "two")
	w.request(chat(user("The wharf is closed.")), headers("gadgets", "two", "bo")...)
	w.delivered(6)
	asks := func(operation string, in m) (status int, answer string) { // within the limit on calls
		helptest.Until(t, "an answer", func() bool {
			status, answer = w.asks("", operation, in)
			return status != http.StatusTooManyRequests
		})
		return status, answer
	}
	for _, of := range [][]string{headers(widgets, "one", "ava"), headers("gadgets", "two", "bo")} {
		w.worksIn(of, "Repair the crane.", round{"bash", `{"command":"npm test"}`, "Tests: 4 passed, 4 total\n<shellId: 0 completed with exit code 0>"})
	}
	helptest.Until(t, "the work", func() bool {
		_, answer := asks("memory/search", m{"workspace": "gadgets", "everything": true, "kind": "work"})
		return strings.Contains(answer, "npm test")
	})
	groupOf := func(of m) string {
		_, answer := asks("memory/groups", of)
		return regexp.MustCompile(`graphiti_(workspace|user)_\w+`).FindString(answer)
	}
	moment := regexp.MustCompile(`\d{4}-\d\d-\d\dT[\d:.]+Z|"(took|ms)": ?[\d.]+`)
	for operation, in := range map[string]m{
		"memory/show": {}, "memory/search": {"query": "What is the vault called?"}, "memory/pending": {"all": true}, "memory/list": {},
		"memory/stats": {}, "memory/groups": {}, "memory/export": {}, "memory/settle": {"accept": []string{"ffffffff"}}, "memory/held": {"keep": []string{"ffffffff"}},
		"memory/suggest": {}, "memory/conversation": {}, "memory/promote": {"text": "The vault of the wharf is called Falcon."}, "memory/people": {}, "memory/state": {},
		"memory/import": {"lines": []m{{"type": "message", "role": "user", "content": "The vault of the attic is called Wren."}}},
	} {
		for field, values := range map[string][2]string{
			"workspace": {widgets, "gadgets"}, "session": {"one", "two"}, "agent": {"ava", "bo"}, "user": {"me", "bob"}, "group": {groupOf(m{"user": "me"}), groupOf(m{"workspace": "gadgets"})},
			"message": {"a", "b"}, "credential": {"sha256:" + strings.Repeat("a", 64), "sha256:" + strings.Repeat("b", 64)},
		} {
			if operation == "memory/groups" && field == "group" { // its answer is the group
				continue
			}
			var answers [2]string
			refused := false
			for i, value := range values {
				asked := maps.Clone(in)
				asked[field] = value
				status, answer := asks(operation, asked)
				refused = refused || status != 200
				answers[i] = moment.ReplaceAllString(strings.ReplaceAll(answer, value, "X"), "")
			}
			if !refused && answers[0] == answers[1] {
				t.Errorf("%s ignores %s: %.300s", operation, field, answers[0])
			}
		}
	}
	_, shown := asks("memory/show", m{"workspace": widgets})
	falcon := regexp.MustCompile(`"id": ?"(\w+)"[^{}]*wharf is called Falcon`).FindStringSubmatch(shown)
	if falcon == nil {
		t.Fatalf("no message about the wharf in %s", shown)
	}
	for operation, in := range map[string]m{"memory/forget": {}, "memory/correct": {"text": "The vault of the wharf is called Kestrel."}, "memory/change": {"do": "end"}} {
		for field, value := range map[string]string{"workspace": "gadgets", "session": "two", "agent": "bo", "user": "bob", "group": groupOf(m{"workspace": "gadgets"})} {
			asked := maps.Clone(in)
			if asked[field] = value; operation == "memory/change" {
				asked["messages"] = falcon[1:]
			} else {
				asked["message"] = falcon[1]
			}
			if status, answer := asks(operation, asked); status == 200 {
				t.Errorf("%s took a message of another %s: %s", operation, field, answer)
			}
		}
	}
	if _, after := asks("memory/show", m{"workspace": widgets}); !strings.Contains(after, "wharf is called Falcon") {
		t.Errorf("the message is gone: %s", after)
	}
}
