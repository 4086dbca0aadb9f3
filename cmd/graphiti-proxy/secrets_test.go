package main

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti/graphititest"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
)

// TestSecretsStayWithTheModel checks that a credential in a message reaches the model
// unchanged, but never the memory service, a file, the log or a later request.
func TestSecretsStayWithTheModel(t *testing.T) {
	t.Parallel()
	const secret = "hunter22xyz"
	g := startGraphiti(t, graphititest.Options{})
	dir := t.TempDir()
	w := start(t, dir, map[string]string{
		"memory.backend": "graphiti", "memory.endpoint": g.URL(), "memory.consent": "true", "identity.owner": "user:josh", "promote.directives": "true",
	})
	one := []string{"X-Graphiti-Session", "one"}
	w.exchange("/v1/chat/completions", chat(user("DB_PASSWORD="+secret+"\nis my setting")), one...)
	if !strings.Contains(string(w.model.Requests()[0].Body), secret) {
		t.Error("the model was not told")
	}
	w.exchange("/v1/chat/completions", chat(
		user("The importer cannot connect."),
		m{"role": "assistant", "content": "", "tool_calls": []m{{"id": "1", "type": "function", "function": m{"name": "bash", "arguments": `{"command":"PGPASSWORD=` + secret + ` psql"}`}}}},
		m{"role": "tool", "tool_call_id": "1", "content": "error: cannot connect to postgres://bob:" + secret + "@db.example.com/x"},
	), one...)
	w.say("The address postgres://bob:" + secret + "@db/x does not answer.")
	w.say("- preference: set SMTP_PASS=" + secret + " first")
	w.say(`My settings are {"password": "` + secret + `"}, and what are yours?`)

	ctx := t.Context()
	if _, err := w.remembers().service.Search(ctx, &service.SearchRequest{Query: "Where is password=" + secret + " used?", All: true}); err != nil {
		t.Error(err)
	}
	if _, err := w.remembers().service.Promote(ctx, &service.PromoteRequest{Promotion: service.Promotion{Kind: "decision", Text: "We set DB_PASS=" + secret}}); err == nil {
		t.Error("promoted")
	}
	line := service.Line{Role: "user", Name: "Ann, password: " + secret, Content: "The login is bob, password: " + secret}
	if done, err := w.remembers().service.Import(ctx, &service.ImportRequest{Lines: []service.Line{line}}); err != nil || done.Kept != 1 {
		t.Errorf("import: %+v, %v", done, err)
	}
	waitUntil(t, "the turns", func() bool { return w.app.memory().queue().Pending == 0 && len(w.held()) >= 2*5+1 })
	w = w.restart() // short-term memory is written with a delay

	w.model.Forget()
	w.exchange("/v1/chat/completions", chat(user("Go on, please.")), one...)
	if b := string(w.model.Requests()[0].Body); !strings.Contains(b, "earlier in this session") || strings.Contains(b, secret) {
		t.Errorf("inserted: %s", b)
	}
	for _, r := range g.Requests() {
		if bytes.Contains(r.Body, []byte(secret)) || strings.Contains(r.Path, secret) {
			t.Errorf("the memory was told: %s %s", r.Call, r.Body)
		}
	}
	w.stop()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if bytes.Contains(b, []byte(secret)) {
			t.Errorf("it is in %s", d.Name())
		}
		return err
	})
	must(t, err)
	if strings.Contains(w.log.String(), secret) {
		t.Error("it is in the log")
	}
}
