//go:build unix

package workspace

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestPipesAreNotRead: an archive may hold them, and whoever opens one waits.
func TestPipesAreNotRead(t *testing.T) {
	dir := t.TempDir()
	hash := "abababababababababababababababababababab"
	for _, name := range []string{"objects/ab/" + hash[2:], "objects/pack/x.idx", "objects/pack/x.pack", "config", "HEAD", "commondir"} {
		path := filepath.Join(dir, ".git", filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	o, err := openObjects(filepath.Join(dir, ".git"))
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	if o.holds(hash) {
		t.Error("found")
	}
	readCheckout(dir)
}
