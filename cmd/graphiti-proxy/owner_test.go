package main

import (
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

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
			if err := lose(filepath.Join(dir, "owner")); err != nil {
				t.Fatal(err)
			}
			w = start(t, dir, nil)
			if _, _, saw := w.say(question); !strings.Contains(saw, "Miso") || w.remembers().callers.owner != before {
				t.Errorf("the owner was %s and is %s, the model saw %q; want the same owner, and the fact", before, w.remembers().callers.owner, saw)
			}
			if !strings.Contains(w.log.String(), "restored the lost file owner of data_dir") {
				t.Errorf("the log does not say that the file owner was lost: %s", w.log.String())
			}
			w.stop()
			db, err := sql.Open("sqlite", filepath.Join(dir, "memory.db"))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := db.Exec("DELETE FROM owners"); err != nil {
				t.Fatal(err)
			}
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			if err := lose(filepath.Join(dir, "owner")); err != nil {
				t.Fatal(err)
			}
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
