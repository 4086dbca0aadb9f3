package main

import (
	"database/sql"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/graphiti-proxy/graphiti-proxy/internal/helptest"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
)

// TestBackups checks that a running proxy writes the scheduled backup, and that a restored one has
// the memory.
func TestBackups(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	must(t, helptest.ErrorOf(command(t, home, "memory", "promote", "--kind", "decision", "Postgres")))
	data, backups := filepath.Join(home, "graphiti-proxy"), filepath.Join(home, "backups")
	start(t, data, map[string]string{"backup.every": "24h", "backup.dir": backups})
	var made []string
	helptest.Until(t, "the backup", func() bool {
		made, _ = filepath.Glob(filepath.Join(backups, "*.zip"))
		return len(made) == 1
	})
	for _, args := range [][]string{{"backup", "--check", made[0]}, {"backup", filepath.Join(home, "own.zip")}} {
		if out, err := command(t, home, args...); err != nil {
			t.Errorf("%v: %s %v", args, out, err)
		}
	}
	if _, err := command(t, home, "restore", made[0]); err == nil || !strings.Contains(err.Error(), "in use by") {
		t.Errorf("restore while the proxy runs: %v", err)
	}
	copied := t.TempDir()
	if out, err := command(t, copied, "restore", made[0]); err != nil || !strings.Contains(out, "start the proxy") {
		t.Fatalf("got %s, %v", out, err)
	}
	if out, err := command(t, copied, "memory", "show", "--user", "me"); err != nil || !strings.Contains(out, "Postgres") {
		t.Errorf("the restored memory shows %s, %v; want the decision", out, err)
	}
	if info, err := os.Stat(made[0]); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v; want 0600", info.Mode(), err)
	}
}

// TestRepairCommand prints the new file and its rows, and does not replace a repaired file.
func TestRepairCommand(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	must(t, helptest.ErrorOf(command(t, home, "memory", "promote", "--kind", "decision", "Postgres")))
	dir := filepath.Join(home, "graphiti-proxy")
	out, err := command(t, home, "repair", "memory.db", "--json")
	var done []service.Repaired
	if err == nil {
		err = json.Unmarshal([]byte(out), &done)
	}
	if err != nil || len(done) != 1 || done[0].New != filepath.Join(dir, "memory.db.repaired") || len(done[0].Tables) == 0 {
		t.Errorf("repair --json = %s, %v; want one file repaired", out, err)
	}
	if _, err := command(t, home, "repair", "memory.db"); err == nil || !strings.Contains(err.Error(), "there already") {
		t.Errorf("second repair: %v, want that the new file is there already", err)
	}
	if out, err := command(t, home, "repair", "state.db"); err != nil || !strings.Contains(out, "state.db.repaired") {
		t.Errorf("repair = %q, %v; want the new file", out, err)
	}
}

// TestLostOwner checks that a proxy whose file owner is lost, as in a power failure, reads
// the owner from its memory. If the memory names no owner, the proxy runs without memory
// and reports the remedy; it never starts with an empty memory.
func TestLostOwner(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(path string) error{
		"empty":   func(path string) error { return os.Truncate(path, 0) },
		"missing": os.Remove,
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			w := start(t, dir, nil)
			w.say(fact)
			w.delivered(1)
			before := w.remembers().callers.owner
			w.stop()
			must(t, lose(filepath.Join(dir, "owner")))
			w = start(t, dir, nil)
			if _, _, saw := w.say(question); !strings.Contains(saw, "Miso") || w.remembers().callers.owner != before {
				t.Errorf("the owner was %s and is %s, the model saw %q; want the same owner, and the fact", before, w.remembers().callers.owner, saw)
			}
			if !strings.Contains(w.log.String(), "restored the lost file owner of data_dir") {
				t.Errorf("the log does not say that the file owner was lost: %s", w.log.String())
			}
			w.stop()
			db, err := sql.Open("sqlite", filepath.Join(dir, "memory.db"))
			must(t, err)
			must(t, helptest.ErrorOf(db.Exec("DELETE FROM owners")))
			must(t, db.Close())
			must(t, lose(filepath.Join(dir, "owner")))
			w = start(t, dir, nil)
			w.off()
			if status := w.status(); !strings.Contains(status, "does not name the owner of the memory") || !strings.Contains(status, "identity.owner") {
				t.Errorf("the status does not say whose memory is unknown, or not the remedy identity.owner: %s", status)
			}
			w.stop()
			w = start(t, dir, map[string]string{"identity.owner": before})
			if _, _, saw := w.say(question); !strings.Contains(saw, "Miso") {
				t.Errorf("with the remedy the model saw %q, want the fact", saw)
			}
			w.stop()
		})
	}
}

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
			must(t, helptest.ErrorOf(w.app.reload(&cfg)))
			release()
			waitUntil(t, "memory", func() bool { return !strings.Contains(w.status(), "in use by another program") })
			if _, header, _ := w.say("What is my otter called?"); !strings.HasPrefix(header, "off") || strings.Contains(header, "reason=state") {
				t.Errorf("the header is %q, want off for recall.enabled as it was reloaded", header)
			}
			must(t, helptest.ErrorOf(w.app.reload(w.app.cfg)))
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
	must(t, err)
	db.SetMaxOpenConns(1)
	must(t, helptest.ErrorOf(db.Exec("BEGIN IMMEDIATE")))
	return func() {
		if _, err := db.Exec("ROLLBACK"); err != nil {
			t.Error(err)
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}
}
