package service_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
	"github.com/graphiti-proxy/graphiti-proxy/internal/servicetest"
)

// TestRepairOfNothing checks that Repair explains why it cannot read a file, and leaves no
// new files.
func TestRepairOfNothing(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "memory.db"), []byte(strings.Repeat("no database ", 1000)), 0o600))
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

// TestRepair checks that the new file has the readable rows of a damaged one, which stays
// unchanged, and that a memory recalls messages from the new file.
func TestRepair(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"state.db", "memory.db"} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			open := func() *servicetest.Fixture { return servicetest.Open(t, dir, servicetest.Options{}) }
			m := open()
			opens(t, m, "", "cat", "My cat is called Miso.")
			for i := range 40 {
				opens(t, m, "", fmt.Sprint("plant", i), fmt.Sprintf("My plant number %d is a fern. %s", i, strings.Repeat("It is green. ", 40)))
			}
			m.Close()
			path := filepath.Join(dir, file)
			damaged, err := os.ReadFile(path)
			must(t, err)
			last := damaged[len(damaged)-4096:] // the last page of the file
			for i := range last {
				last[i] = byte(i*7 + 3)
			}
			must(t, os.WriteFile(path, damaged, 0o600))
			done, err := service.Repair(t.Context(), dir, []string{file})
			if err != nil || len(done) != 1 || done[0].New != path+".repaired" {
				t.Fatalf("Repair = %+v, %v, want one file", done, err)
			}
			if after, err := os.ReadFile(path); err != nil || !bytes.Equal(after, damaged) {
				t.Errorf("the damaged file was changed, or cannot be read: %v", err)
			}
			if _, err := service.Repair(t.Context(), dir, []string{file}); err == nil || !strings.Contains(err.Error(), "there already") {
				t.Errorf("second Repair = %v, want that the new file is there already", err)
			}
			rows := 0
			for _, table := range done[0].Tables {
				rows += table.Rows
			}
			if rows < 40 {
				t.Errorf("Repair = %+v has %d rows, want at least 40", done, rows)
			}
			for _, end := range []string{"", "-wal", "-shm"} {
				_ = os.Remove(path + end)
			}
			must(t, os.Rename(path+".repaired", path))
			m = open()
			if block := opens(t, m, "", "asks", "What is my cat called?"); !strings.Contains(block, "Miso") {
				t.Errorf("block = %q, want the cat", block)
			}
			if q := m.Pipeline.Status(); q.Delivered < 41 {
				t.Errorf("queue = %+v, want at least 41 delivered turns", q)
			}
		})
	}
}
