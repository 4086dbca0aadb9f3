package main

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// firstEdition makes the data directory of a proxy of the first edition. make.py
// beside the files says what happened there; here it happened just now.
func firstEdition(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	from := filepath.Join("testdata", "first-edition")
	for name, now := range map[string]string{
		"spool": "UPDATE spool SET born = 1000 * unixepoch() - 8 + seq; UPDATE seen SET at = unixepoch()",
		"state": "UPDATE blocks SET born = unixepoch(), since = 1000000 * unixepoch(); UPDATE snapshots SET born = unixepoch()",
	} {
		dump, err := os.ReadFile(filepath.Join(from, name+".sql"))
		if err != nil {
			t.Fatal(err)
		}
		db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, name+".db"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := db.Exec(string(dump) + now); err != nil {
			t.Fatal(name, err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
	memory, err := os.ReadFile(filepath.Join(from, "memory.db"))
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "memory.db"), memory, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestFirstEditionIsTakenOver: the block of a conversation is repeated, what was
// remembered is found, the turns that waited are delivered, and a dead one can
// be retried.
func TestFirstEditionIsTakenOver(t *testing.T) {
	w := start(t, firstEdition(t), map[string]string{"identity.owner": "user:ada"})
	const asked = "What is my sailing boat Zephyrine called, and where does it lie?"
	saw := func(session string, messages ...map[string]any) string {
		t.Helper()
		w.model.Forget()
		body, err := json.Marshal(map[string]any{"model": "m", "messages": messages})
		if err != nil {
			t.Fatal(err)
		}
		req, err := http.NewRequest(http.MethodPost, "http://"+w.app.proxy.Addr().String()+"/v1/chat/completions", bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Graphiti-Session", session)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		_, _ = io.Copy(io.Discard, resp.Body)
		var r struct {
			Messages []struct{ Content string }
		}
		if err := json.Unmarshal(w.model.Requests()[0].Body, &r); err != nil {
			t.Fatal(err)
		}
		return r.Messages[0].Content
	}
	dump, err := os.ReadFile(filepath.Join("testdata", "first-edition", "state.sql"))
	if err != nil {
		t.Fatal(err)
	}
	if got := saw("s2", user(asked), map[string]any{"role": "assistant", "content": "Noted: " + asked}, user("Thanks.")); !strings.HasSuffix(got, "\n\n"+asked) ||
		!strings.Contains(string(dump), "'"+strings.TrimSuffix(got, "\n\n"+asked)) {
		t.Errorf("the block of the first edition is not repeated: %q", got)
	}
	if got := saw("s9", user(asked)); !strings.Contains(got, "Flensburg") {
		t.Errorf("what the first edition remembered is not found: %q", got)
	}
	w.delivered(7) // and what was said here
	if q := w.app.queue(); q.Dead != 1 {
		t.Errorf("%+v", q)
	}
	if n, err := w.app.pipeline.Retry(nil); n != 1 || err != nil {
		t.Error(n, err)
	}
	w.delivered(8)
	if got := saw("s10", user("What about knots and ropes, fog horns and sextants?")); !strings.Contains(got, "knots") || !strings.Contains(got, "fog horns") {
		t.Errorf("what waited is not found: %q", got)
	}
}
