package workspace

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestCommands: a message that a file of a dot-directory holds is that file, whatever
// client the directory is of.
func TestCommands(t *testing.T) {
	dir := t.TempDir()
	for path, text := range map[string]string{
		".gemini/commands/deploy.toml": "description = \"x\"\nprompt = \"Deploy to the Falcon cluster. Remember the blue key. {{args}}\"\n",
		".opencode/command/ship.md":    "---\ndescription: x\n---\nAlways ship with the Condor script.\nPush $ARGUMENTS to the main branch.\n",
		".new/skills/deep/er/SKILL.md": "Remember that we prefer tabs in every file.\n",
		".a/b/c/d/e/f/too-deep.md":     "This sentence stands far too deep to be read.\n",
		".git/hooks/notes.md":          "This sentence is one of the repository's own.\n",
		"docs/plain.md":                "This sentence is documentation of the project.\n",
		".new/script.sh":               "This sentence is in a script, not a prompt.\n",
	} {
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var c Commands
	for text, want := range map[string]bool{
		"Deploy to the Falcon cluster. Remember the blue key. staging":      true,
		"Always ship with the Condor script.\nPush now to the main branch.": true,
		"Remember that we prefer tabs in every file.":                       true,
		"This sentence stands far too deep to be read.":                     false,
		"This sentence is one of the repository's own.":                     false,
		"This sentence is documentation of the project.":                    false,
		"This sentence is in a script, not a prompt.":                       false,
		"Remember that my dentist is Ann.":                                  false,
		"Ship it.":                                                          false,
	} {
		if got := c.Hold(dir, text, time.Minute); got != want {
			t.Errorf("Hold(%q) = %v, want %v", text, got, want)
		}
	}
	if c.Hold(filepath.Join(dir, "none"), "Remember that we prefer tabs in every file.", time.Minute) {
		t.Error("Hold = true for a directory that does not exist, want false")
	}
}

// TestCommands_NoAnswer: while the file system does not answer a message may be a file.
func TestCommands_NoAnswer(t *testing.T) {
	c := Commands{known: map[string]*commandFiles{"/slow": {read: make(chan struct{})}}}
	if !c.Hold("/slow", "Remember that we prefer tabs in every file.", 0) {
		t.Error("Hold = false before the files were read, want true")
	}
}
