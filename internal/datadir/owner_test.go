package datadir

import (
	"errors"
	"os"
	"strings"
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
				if err := os.WriteFile(ownerFile(dir), []byte(tc.file), 0o600); err != nil {
					t.Fatal(err)
				}
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
