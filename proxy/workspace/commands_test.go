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
		must(t, os.MkdirAll(filepath.Dir(path), 0o700))
		must(t, os.WriteFile(path, []byte(text), 0o600))
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
			must(t, os.Symlink("../../docs/x.md", filepath.Join(dir, ".opencode/command/x.md")))
		},
		"a linked directory": func(t *testing.T, dir string) {
			write(t, dir, "docs/x.md", rule)
			must(t, os.Symlink("docs", filepath.Join(dir, ".commands")))
		},
		"a circle of links": func(t *testing.T, dir string) {
			must(t, os.Symlink(".", filepath.Join(dir, ".commands")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			lay(t, dir)
			if c := (Commands{}); !c.Hold(&Repo{Dir: dir, Root: dir}, rule, time.Minute) {
				t.Errorf("Hold(%q) = false, want true", rule)
			}
		})
	}
	dir := t.TempDir()
	var c Commands
	for text, want := range map[string]bool{rule: false, "I like tea. " + rule: false} {
		if got := c.Hold(&Repo{Dir: dir, Root: dir}, text, time.Minute); got != want {
			t.Errorf("Hold(%q) = %v without a file, want %v", text, got, want)
		}
	}
	dir = t.TempDir()
	write(t, dir, ".git/notes.md", rule)
	write(t, dir, "docs/x.md", rule)
	write(t, dir, ".a/script.sh", rule)
	write(t, dir, ".a/x.md", "Deploy to the Falcon cluster.")
	for text, want := range map[string]bool{rule: false, "Remember that my dentist is Ann.": false, "Remember that I like tea. Thanks a lot.": true} {
		if got := c.Hold(&Repo{Dir: dir, Root: dir}, text, time.Minute); got != want {
			t.Errorf("Hold(%q) = %v beside another command, want %v", text, got, want)
		}
	}
}

// TestCommands_NoAnswer: while the file system does not answer a message may be a file.
func TestCommands_NoAnswer(t *testing.T) {
	var c Commands
	c.files(t.TempDir(), time.Minute)
	c.reads.known["/slow"] = &place[commandTexts]{look: make(chan struct{})}
	if !c.Hold(&Repo{Dir: "/slow", Root: "/slow"}, "Remember that we prefer tabs in every file.", 0) {
		t.Error("Hold = false before the files were read, want true")
	}
}

// TestCommands_Words checks that a command file's text is the command that the person typed, in the
// forms of all clients, and that other words are not.
func TestCommands_Words(t *testing.T) {
	dir := t.TempDir()
	for path, text := range map[string]string{
		".gemini/commands/deploy.toml":     "description = \"x\"\nprompt = \"\"\"\nDeploy to the Falcon cluster.\n\nRemember that we always use the blue key.\n\"\"\"\n",
		".gemini/commands/git/commit.toml": "prompt = 'Write a commit message for {{args}}, and nothing else. Diff: !{git diff --staged}'\n",
		".qwen/commands/check.md":          "---\ndescription: x\n---\r\nCheck the wharf\r\nfor rust.\r\n",
		".opencode/command/ship/now.md":    "Ship $1 with the Condor script to $2 at once.\n",
		".opencode/commands/fix.md":        "Fix the issue.\n\n$ARGUMENTS\n",
		"opencode.json":                    `{"command":{"lint":{"template":"Lint all files of the repository.\nOur linter is Osprey."}}}`,
		".codex/prompts/plan.md":           "Plan the next step of this work.",
		".claude/skills/paint/SKILL.md":    "---\nname: paint\n---\nPaint with ochre only.",
		".claude/commands/all.md":          "$ARGUMENTS",
	} {
		full := filepath.Join(dir, path)
		must(t, os.MkdirAll(filepath.Dir(full), 0o700))
		must(t, os.WriteFile(full, []byte(text), 0o600))
	}
	var c Commands
	for message, want := range map[string]string{
		"Deploy to the Falcon cluster.\n\nRemember that we always use the blue key.":                      "/deploy",
		"\nDeploy to the Falcon cluster.\n\nRemember that we always use the blue key.\n\n/deploy staging": "/deploy staging",
		"Deploy to the Falcon cluster. Remember that we always use the blue key.\n\nstaging, please":      "/deploy staging, please",
		"Write a commit message for the docks, and nothing else. Diff: --- a\n+++ b":                      "/git:commit the docks",
		"Check the wharf\nfor rust.":                                            "/check",
		"Ship crates with the Condor script to Oban at once.":                   "/ship/now crates Oban",
		"Fix the issue.\n\nThe door of the shed is stuck.\nIt is the left one.": "/fix The door of the shed is stuck.\nIt is the left one.",
		"Lint all files of the repository.\nOur linter is Osprey.":              "/lint",
		"Plan the next step of this work.":                                      "/plan",
		"Paint with ochre only.":                                                "/paint",
		"Check the wharf for rust. Our rust man is called Ottokar.":             "",
		"Check the wharf":                                 "",
		"Deploy to the Heron cluster.":                    "",
		"Our release manager is Ottokar.":                 "",
		"The file says: Plan the next step of this work.": "",
	} {
		if got := c.Words(&Repo{Dir: dir, Root: dir}, message, time.Minute); got != want {
			t.Errorf("Words(%q) = %q, want %q", message, got, want)
		}
	}
}
