package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSiteHasEachPage: the navigation of the documentation site names each page of docs.
func TestSiteHasEachPage(t *testing.T) {
	nav, err := os.ReadFile("../../deploy/site/mkdocs.yml")
	if err != nil {
		t.Fatal(err)
	}
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("got %d pages of docs and %v, want some", len(pages), err)
	}
	for _, page := range pages {
		if name := filepath.Base(page); !strings.Contains(string(nav), ": "+name+"\n") {
			t.Errorf("deploy/site/mkdocs.yml: the navigation has no %s", name)
		}
	}
}
