package service_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
)

// TestRepairOfNothing says what is wrong, and leaves nothing behind.
func TestRepairOfNothing(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "memory.db"), []byte(strings.Repeat("no database ", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"memory.db": "nothing can be read", "../memory.db": "not a file of a data", "state.db": "no such file"} {
		if _, err := service.Repair(t.Context(), dir, []string{name}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
	left, err := filepath.Glob(filepath.Join(dir, "repair-*"))
	if more, _ := filepath.Glob(filepath.Join(dir, "*.repaired")); err != nil || len(left)+len(more) > 0 {
		t.Errorf("left behind: %v %v", left, more)
	}
}
