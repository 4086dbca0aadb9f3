package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// TestManPagesAreCurrent: to update the pages, run UPDATE=1 go test
// ./cmd/graphiti-proxy -run ManPages.
func TestManPagesAreCurrent(t *testing.T) {
	dir := filepath.Join("..", "..", "deploy", "man")
	if os.Getenv("UPDATE") != "" {
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	want := t.TempDir()
	root := newRootCommand()
	// Else the pages of shells depend on the version of the library.
	root.CompletionOptions = cobra.CompletionOptions{DisableDefaultCmd: true}
	root.DisableAutoGenTag = true
	edition := time.Date(2026, time.November, 1, 0, 0, 0, 0, time.UTC)
	header := &doc.GenManHeader{Title: "GRAPHITI-PROXY", Section: "1", Source: "graphiti-proxy", Manual: "graphiti-proxy", Date: &edition}
	if err := doc.GenManTree(root, header, want); err != nil {
		t.Fatal(err)
	}
	pages, err := os.ReadDir(want)
	if err != nil || len(pages) < 20 {
		t.Fatalf("got %v, %v, want no error, at least 20 of them", len(pages), err)
	}
	for _, p := range pages {
		fresh, err := os.ReadFile(filepath.Join(want, p.Name()))
		if err != nil {
			t.Fatal(err)
		}
		at := filepath.Join(dir, p.Name())
		if os.Getenv("UPDATE") != "" {
			if err := os.WriteFile(at, fresh, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if kept, err := os.ReadFile(at); err != nil || !bytes.Equal(kept, fresh) {
			t.Errorf("%s is not current: %v", at, err)
		}
	}
	if kept, err := os.ReadDir(dir); err != nil || len(kept) != len(pages) {
		t.Errorf("%d pages, want %d: %v", len(kept), len(pages), err)
	}
}
