package main

import (
	"bytes"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/graphiti-proxy/graphiti-proxy/"

// mayImport says which of our packages each of them may import; tests may
// import more.
var mayImport = map[string][]string{
	"bench":                 {"graphiti/graphititest"},
	"cache":                 {"cache/redis", "cache/sqlite"},
	"cache/redis":           {},
	"cache/redis/redistest": {},
	"cache/sqlite":          {},
	"budget":                {},
	"capture":               {"budget", "capture/secrets", "graphiti", "cache/redis", "cache/sqlite"},
	"capture/secrets":       {},
	"cmd/graphiti-proxy":    {"budget", "cache", "cache/redis", "cache/sqlite", "capture", "config", "graphiti", "inject", "proxy", "proxy/admin", "proxy/proxytest", "proxy/workspace"},
	"config":                {},
	"graphiti":              {"cache/sqlite"},
	"graphiti/graphititest": {},
	"inject":                {"graphiti"},
	"proxy":                 {"budget", "capture", "graphiti", "inject", "proxy/workspace"},
	"proxy/admin":           {"capture", "graphiti"},
	"proxy/proxytest":       {},
	"proxy/workspace":       {"graphiti"},
}

// maxLines is the length from which a file holds more than one idea.
const maxLines = 500

// TestLayout holds the tree to ARCHITECTURE.md.
func TestLayout(t *testing.T) {
	root := filepath.Join("..", "..")
	documented := make(map[string]bool)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			if d != nil && (d.Name() == ".git" || d.Name() == ".cache" || d.Name() == "testdata") {
				return filepath.SkipDir
			}
			return err
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		name, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		src, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if n := bytes.Count(src, []byte("\n")); n > maxLines {
			t.Errorf("%s has %d lines", path, n)
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, src, parser.ImportsOnly|parser.ParseComments)
		if err != nil {
			return err
		}
		if file.Doc != nil {
			documented[name] = true
		} else if !documented[name] {
			documented[name] = false
		}
		allowed, known := mayImport[name]
		if !known {
			t.Errorf("%s is a package that the layout does not have", name)
		}
		for _, imp := range file.Imports {
			if of, ours := strings.CutPrefix(strings.Trim(imp.Path.Value, `"`), module); ours && !slices.Contains(allowed, of) {
				t.Errorf("%s imports %s", path, of)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, ok := range documented {
		if !ok {
			t.Errorf("%s does not say what it owns", name)
		}
	}
}

// TestBinaryHoldsNoTestCode.
func TestBinaryHoldsNoTestCode(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Skipf("go list: %v", err)
	}
	for _, line := range strings.Fields(string(out)) {
		if line == "testing" || line == module+"graphiti/graphititest" {
			t.Errorf("%s is linked in", line)
		}
	}
}
