package main

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// TestArchitectureNamesExist checks that the files that docs/architecture.md names exist, and
// declare the names that follow them, as in `inject/choose.go` `choose` and `look`.
func TestArchitectureNamesExist(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	namedFile := regexp.MustCompile("`([a-z_/]+/[a-z_]+\\.[a-z]+)`((?:(?: | and |, )`[A-Za-z]+`)*)")
	name := regexp.MustCompile("`([A-Za-z]+)`")
	files, names := 0, 0
	for _, m := range namedFile.FindAllStringSubmatch(string(page), -1) {
		files++
		code, err := os.ReadFile(filepath.Join("../..", m[1]))
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		for _, n := range name.FindAllStringSubmatch(m[2], -1) {
			names++
			declared := regexp.MustCompile(`(?m)^(?:func (?:\([^)]*\) )?|type |var )` + n[1] + `\b|^\t` + n[1] + `\s+=`)
			if !declared.Match(code) {
				t.Errorf("%s does not declare %s", m[1], n[1])
			}
		}
	}
	if files < 50 || names < 50 {
		t.Errorf("got %d files and %d names, want at least 50 of each", files, names)
	}
}
