package main

import (
	"database/sql"
	"path/filepath"
	"strings"
	"testing"
	"time"

	_ "modernc.org/sqlite" // the driver "sqlite"
)

// TestFileInUseAtStart checks that the proxy forwards without memory, and reports why,
// while another program holds a file of data_dir. Once the file is free, memory works with
// the configuration reloaded meanwhile.
func TestFileInUseAtStart(t *testing.T) {
	for _, name := range []string{"memory.db", "state.db"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			began := time.Now()
			w := start(t, dir, nil)
			usual := time.Since(began)
			w.say("My otter is called Lockless.")
			w.delivered(1)
			w.stop()
			release := hold(t, filepath.Join(dir, name))

			began = time.Now()
			w = start(t, dir, nil)
			if took := time.Since(began); took > usual+4*time.Second {
				t.Errorf("the start took %s, want less than the wait for a busy file longer than %s", took, usual)
			}
			if _, header, saw := w.say("What is my otter called?"); !strings.HasPrefix(header, "off") || !strings.Contains(header, "reason=state") || saw != "What is my otter called?" {
				t.Errorf("in use: the header is %q, the model saw %q; want off, state, and the question alone", header, saw)
			}
			for _, want := range []string{name + " is in use by another program", "retries every second"} {
				if s := w.status(); !strings.Contains(s, want) {
					t.Errorf("in use: the status has no %q:\n%s", want, s)
				}
			}
			if _, body := w.asks("", "memory/show", m{}); !strings.Contains(body, "in use by another program") {
				t.Errorf("in use: memory/show says %s, want why there is no memory", body)
			}
			cfg := *w.app.cfg
			cfg.Recall.Enabled = false
			if _, err := w.app.reload(&cfg); err != nil {
				t.Fatal(err)
			}
			release()
			waitUntil(t, "memory", func() bool { return !strings.Contains(w.status(), "in use by another program") })
			if _, header, _ := w.say("What is my otter called?"); !strings.HasPrefix(header, "off") || strings.Contains(header, "reason=state") {
				t.Errorf("the header is %q, want off for recall.enabled as it was reloaded", header)
			}
			if _, err := w.app.reload(w.app.cfg); err != nil {
				t.Fatal(err)
			}
			if _, _, saw := w.say("Which name does my otter have?"); !strings.Contains(saw, "Lockless") {
				t.Errorf("the model saw %q, want the fact", saw)
			}
			if _, body := w.asks("", "memory/show", m{}); !strings.Contains(body, "Lockless") {
				t.Errorf("memory/show says %s, want the fact", body)
			}
		})
	}
}

// hold starts a write transaction in a database, like another program, and returns a
// function that ends it.
func hold(t *testing.T, path string) (release func()) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	if _, err := db.Exec("BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	return func() {
		if _, err := db.Exec("ROLLBACK"); err != nil {
			t.Error(err)
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}
}
