package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
)

// TestRepairCommand prints the new file and its rows, and does not replace a repaired file.
func TestRepairCommand(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	if _, err := command(t, home, "memory", "promote", "--kind", "decision", "Postgres"); err != nil {
		t.Fatal(err)
	}
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
