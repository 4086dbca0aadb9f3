package datadir

import (
	"os"
	"path/filepath"
	"testing"
)

func TestWriteFileReplacesTheFileWhole(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "small")
	for _, text := range []string{"the first, which is longer\n", "second\n", ""} {
		if err := WriteFile(path, []byte(text)); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(path)
		if err != nil || string(b) != text {
			t.Errorf("the file holds %q, %v; want %q", b, err, text)
		}
	}
	info, err := os.Stat(path)
	if err != nil || os.PathSeparator == '/' && info.Mode() != 0o600 {
		t.Errorf("the file has mode %v, %v; want 0600", info.Mode(), err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("the directory holds %v, %v; want one file", left, err)
	}
	if err := WriteFile(filepath.Join(dir, "missing", "small"), nil); err == nil {
		t.Error("written into no directory")
	}
}
