//go:build e2e

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// site builds the documentation of root in strict mode, and returns the directory of the
// site and the output of mkdocs.
func site(t *testing.T, root string) (dir, said string, err error) {
	t.Helper()
	dir = t.TempDir()
	cmd := exec.Command("python3", "-m", "mkdocs", "build", "--strict", "--config-file", filepath.Join(root, "deploy", "site", "mkdocs.yml"), "--site-dir", dir)
	modules, absErr := filepath.Abs(".cache/site")
	if absErr != nil {
		t.Fatal(absErr)
	}
	cmd.Env = append(os.Environ(), "PYTHONPATH="+modules)
	out, err := cmd.CombinedOutput()
	return dir, string(out), err
}

// TestDocumentationIsASite checks that the site has every page and no broken link.
func TestDocumentationIsASite(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat(".cache/site/requirements.txt"); err != nil {
		t.Skip("SKIPPED LOUDLY: mkdocs is not installed; run internal/e2e/install.sh where PyPI is reached")
	}
	dir, said, err := site(t, "../..")
	if err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(pages) < 15 {
		t.Fatalf("got %v, %v, want no error, at least 15 of them", pages, err)
	}
	for _, p := range pages {
		name := strings.TrimSuffix(filepath.Base(p), ".md")
		if name == "README" {
			name = ""
		}
		if html := read(t, filepath.Join(dir, name, "index.html")); !strings.Contains(html, "graphiti-proxy") {
			t.Errorf("%s is an empty page", p)
		}
	}
	if html := read(t, filepath.Join(dir, "index.html")); !strings.Contains(html, "https://github.com/graphiti-proxy/graphiti-proxy/blob/main/deploy/README.md") {
		t.Error("links out of docs/ do not lead to the repository")
	}

	// A build that accepts everything proves nothing.
	broken := t.TempDir()
	must(t, os.MkdirAll(filepath.Join(broken, "deploy", "site"), 0o700))
	must(t, os.CopyFS(filepath.Join(broken, "docs"), os.DirFS("../../docs")))
	for name, text := range map[string]string{"deploy/site/links.py": read(t, "../../deploy/site/links.py"), "deploy/site/mkdocs.yml": read(t, "../../deploy/site/mkdocs.yml"), "docs/memory.md": read(t, "../../docs/memory.md") + "\n[x](nowhere.md)\n"} {
		write(t, text, broken, name)
	}
	if _, said, err := site(t, broken); err == nil || !strings.Contains(said, "nowhere.md") {
		t.Errorf("a broken link is accepted: %v, %s", err, said)
	}
}
