package datadir

import (
	"os"
	"path/filepath"
	"testing"
)

// TestChangesAreTold: of files that are deleted or moved, of the directory, and of
// those above it; not of files that are written to.
func TestChangesAreTold(t *testing.T) {
	for name, change := range map[string]func(top, dir string) error{
		"deleted file": func(_, dir string) error { return os.Remove(filepath.Join(dir, "state.db")) },
		"replaced file": func(top, dir string) error {
			return os.Rename(filepath.Join(top, "other"), filepath.Join(dir, "state.db"))
		},
		"deleted directory":     func(_, dir string) error { return os.RemoveAll(dir) },
		"moved directory":       func(_, dir string) error { return os.Rename(dir, dir+"2") },
		"moved directory above": func(top, _ string) error { return os.Rename(filepath.Join(top, "a"), filepath.Join(top, "b")) },
		"what does not matter":  nil,
	} {
		t.Run(name, func(t *testing.T) {
			top := t.TempDir()
			dir := filepath.Join(top, "a", "data")
			if err := os.MkdirAll(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			for _, file := range []string{filepath.Join(dir, "state.db"), filepath.Join(top, "other")} {
				if err := os.WriteFile(file, nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			reported, end := changes(dir)
			defer end()
			if reported == nil {
				t.Skip("this system does not tell")
			}
			if change == nil {
				if err := os.WriteFile(filepath.Join(dir, "state.db"), []byte("x"), 0o600); err != nil {
					t.Fatal(err)
				}
				if err := os.Rename(filepath.Join(top, "other"), filepath.Join(top, "another")); err != nil {
					t.Fatal(err)
				}
				end()
				if len(reported) > 0 {
					t.Error("a change of another file is reported")
				}
				return
			}
			if err := change(top, dir); err != nil {
				t.Fatal(err)
			}
			<-reported
		})
	}
}
