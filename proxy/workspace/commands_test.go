package workspace

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestCommands checks that a message may be a command file of any client, in each form that
// repositories keep them.
func TestCommands(t *testing.T) {
	write := func(t *testing.T, dir, path, text string) {
		t.Helper()
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const rule = "Always ship with the Condor script."
	for name, lay := range map[string]func(t *testing.T, dir string){
		"Markdown": func(t *testing.T, dir string) {
			write(t, dir, ".opencode/command/x.md", "---\ndescription: x\n---\n"+rule+"\n")
		},
		"deep":     func(t *testing.T, dir string) { write(t, dir, ".a/b/c/d/e/f/g/x.md", rule) },
		"too deep": func(t *testing.T, dir string) { write(t, dir, ".a"+strings.Repeat("/b", 20)+"/x.md", rule) },
		"long front matter": func(t *testing.T, dir string) {
			write(t, dir, ".a/x.md", "---\n#"+strings.Repeat("x", 100_000)+"\n---\n"+rule)
		},
		"a large file": func(t *testing.T, dir string) { write(t, dir, ".a/x.md", strings.Repeat("x", 2<<20)) },
		"an escape": func(t *testing.T, dir string) {
			write(t, dir, ".gemini/commands/x.toml", `prompt = "\u0041lways ship with the \u0043ondor script."`)
		},
		"an argument": func(t *testing.T, dir string) { write(t, dir, ".a/x.md", "Always$1 ship with the {{bird}} script.") },
		"wrapped":     func(t *testing.T, dir string) { write(t, dir, ".a/x.md", "Always ship\nwith the Condor\nscript.") },
		"JSON": func(t *testing.T, dir string) {
			write(t, dir, "opencode.json", `{"command":{"x":{"template":"`+rule+`"}}}`)
		},
		"a prompt": func(t *testing.T, dir string) { write(t, dir, "prompts/x.prompt", rule) },
		"a recipe": func(t *testing.T, dir string) { write(t, dir, "recipes/x.yaml", "prompt: "+rule) },
		"many files": func(t *testing.T, dir string) {
			for i := range 300 {
				write(t, dir, fmt.Sprintf(".a/%03d.md", i), "x")
			}
			write(t, dir, ".opencode/command/x.md", rule)
		},
		"a link": func(t *testing.T, dir string) {
			write(t, dir, "docs/x.md", rule)
			write(t, dir, ".opencode/command/y.md", "x")
			if err := os.Symlink("../../docs/x.md", filepath.Join(dir, ".opencode/command/x.md")); err != nil {
				t.Fatal(err)
			}
		},
		"a linked directory": func(t *testing.T, dir string) {
			write(t, dir, "docs/x.md", rule)
			if err := os.Symlink("docs", filepath.Join(dir, ".commands")); err != nil {
				t.Fatal(err)
			}
		},
		"a circle of links": func(t *testing.T, dir string) {
			if err := os.Symlink(".", filepath.Join(dir, ".commands")); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			lay(t, dir)
			if c := (Commands{}); !c.Hold(dir, rule, time.Minute) {
				t.Errorf("Hold(%q) = false, want true", rule)
			}
		})
	}
	dir := t.TempDir()
	var c Commands
	for text, want := range map[string]bool{rule: false, "I like tea. " + rule: false} {
		if got := c.Hold(dir, text, time.Minute); got != want {
			t.Errorf("Hold(%q) = %v without a file, want %v", text, got, want)
		}
	}
	dir = t.TempDir()
	write(t, dir, ".git/notes.md", rule)
	write(t, dir, "docs/x.md", rule)
	write(t, dir, ".a/script.sh", rule)
	write(t, dir, ".a/x.md", "Deploy to the Falcon cluster.")
	for text, want := range map[string]bool{rule: false, "Remember that my dentist is Ann.": false, "Remember that I like tea. Thanks a lot.": true} {
		if got := c.Hold(dir, text, time.Minute); got != want {
			t.Errorf("Hold(%q) = %v beside another command, want %v", text, got, want)
		}
	}
}

// TestCommands_NoAnswer: while the file system does not answer a message may be a file.
func TestCommands_NoAnswer(t *testing.T) {
	c := Commands{known: map[string]*commandFiles{"/slow": {read: make(chan struct{})}}}
	if !c.Hold("/slow", "Remember that we prefer tabs in every file.", 0) {
		t.Error("Hold = false before the files were read, want true")
	}
}
