package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/internal/polltest"
)

// TestBackups checks that a running proxy writes the scheduled backup, and that a restored one has
// the memory.
func TestBackups(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	if _, err := command(t, home, "memory", "promote", "--kind", "decision", "Postgres"); err != nil {
		t.Fatal(err)
	}
	data, backups := filepath.Join(home, "graphiti-proxy"), filepath.Join(home, "backups")
	start(t, data, map[string]string{"backup.every": "24h", "backup.dir": backups})
	var made []string
	polltest.Until(t, "the backup", func() bool {
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
