package datadir

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestOwnFiles_Foreign checks that the files of the directory are neither written through a
// link nor read from one, from a pipe, or without a bound.
func TestOwnFiles_Foreign(t *testing.T) {
	const precious = "user:abcdefghijklmnopqrstuvwxyz\n"
	for _, name := range []string{"lock", "owner", "secret"} {
		for kind, place := range map[string]func(path, target string) error{
			"link":     func(path, target string) error { return os.Symlink(target, path) },
			"dangling": func(path, target string) error { return os.Symlink(target+"-missing", path) },
			"pipe":     func(path, _ string) error { return syscall.Mkfifo(path, 0o600) },
			"large": func(path, _ string) error {
				return os.WriteFile(path, []byte(precious+strings.Repeat("\n", maxOwn)), 0o600)
			},
		} {
			dir, other := t.TempDir(), t.TempDir()
			target := filepath.Join(other, "precious")
			if err := os.WriteFile(target, []byte(precious), 0o600); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(dir, name)
			if err := place(path, target); err != nil {
				t.Fatal(err)
			}
			if b, err := readOwn(path); err == nil {
				t.Errorf("%s as a %s: readOwn returns %d bytes, want an error", name, kind, len(b))
			}
			if name == "lock" {
				l, err := Acquire(dir, Proxy)
				if (err == nil) != (kind == "large") {
					t.Errorf("Acquire with lock as a %s: %v", kind, err)
				}
				if err == nil {
					_ = l.Unlock()
				}
			}
			if entries, err := os.ReadDir(other); err != nil || len(entries) != 1 {
				t.Errorf("%s as a %s: %d files at the target, want 1 (%v)", name, kind, len(entries), err)
			}
			if b, err := os.ReadFile(target); err != nil || string(b) != precious {
				t.Errorf("%s as a %s: the target is %q (%v)", name, kind, b, err)
			}
		}
	}
}
