package datadir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/cache/database"
)

// TestOwnerIsNeverReplaced checks that a file emptied by a power loss does not cause a new
// person if a memory exists.
func TestOwnerIsNeverReplaced(t *testing.T) {
	made, other := newOwner(), newOwner()
	for _, tc := range []struct {
		name, file string // file is "-" for no file
		held       []string
		owner      string // "new" for another one
		remedy     string // of the error
	}{
		{"kept", made + "\n", []string{other}, made, ""},
		{"set by hand", "github_login:octocat", []string{made}, "github_login:octocat", ""},
		{"first start", "-", nil, "new", ""},
		{"empty, and nothing was said", "", nil, "new", ""},
		{"empty", "", []string{made, made}, made, ""},
		{"missing", "-", []string{made, "user:discord:1"}, made, ""},
		{"zeroes, as some file systems leave", "\x00\x00\x00\x00", []string{made}, made, ""},
		{"two people", "", []string{made, other}, "", "from a backup"},
		{"a person who was named in the configuration", "-", []string{"user:josh"}, "", "identity.owner to the owner (a new name"},
		{"tenants", "-", []string{"sha256:ab"}, "", "identity.owner to the owner"},
		{"nobody knows", "", []string{""}, "", "from a backup"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			if tc.file != "-" {
				must(t, os.WriteFile(ownerFile(dir), []byte(tc.file), 0o600))
			}
			owner, recovered, err := Owner(dir, func() ([]string, error) { return tc.held, nil })
			if tc.remedy != "" {
				var wrong *database.Fault
				if !errors.As(err, &wrong) || !wrong.Lasting() || !strings.Contains(wrong.Remedy, tc.remedy) || strings.Contains(err.Error(), "\n") {
					t.Fatalf("got owner %q, error %v; want a lasting fault with the remedy %q", owner, err, tc.remedy)
				}
				if b, err := os.ReadFile(ownerFile(dir)); err == nil && string(b) != tc.file {
					t.Errorf("it was changed to %q", b)
				}
				return
			}
			if err != nil || tc.owner != "new" && owner != tc.owner || tc.owner == "new" && (owner == made || !madeHere.MatchString(owner)) {
				t.Fatalf("got owner %q, error %v; want owner %s", owner, err, tc.owner)
			}
			if known, _ := readOwner(dir); known != owner || recovered != (tc.file != made+"\n" && owner == made) {
				t.Errorf("got owner %q, recovered %v; want owner %q", known, recovered, owner)
			}
		})
	}
	if _, _, err := Owner(t.TempDir(), func() ([]string, error) { return nil, errors.New("cannot be read") }); err == nil {
		t.Error("a new one is made though nobody knows what is there")
	}
}

// TestWhoHoldsTheLock checks that the error of a held lock names a remedy that fits the
// holder: a command ends by itself, a proxy does not.
func TestWhoHoldsTheLock(t *testing.T) {
	me := fmt.Sprintf("(process %d); ", os.Getpid())
	for holder, want := range map[string]string{Command: me + "wait until it ends", Proxy: me + "stop that one"} {
		dir := t.TempDir()
		l, err := Acquire(dir, holder)
		must(t, err)
		if _, err := Acquire(dir, Command); !errors.Is(err, ErrInUse) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: Acquire returns %v, want ErrInUse with %q", holder, err, want)
		}
		must(t, l.Unlock())
	}
}

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
			must(t, os.WriteFile(target, []byte(precious), 0o600))
			path := filepath.Join(dir, name)
			must(t, place(path, target))
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
