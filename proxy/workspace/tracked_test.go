package workspace

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestTracks checks that a file counts as tracked if the repository contains it, also if git
// ignores it, or if the index is not understood.
func TestTracks(t *testing.T) {
	const name = ".aider.chat.history.md"
	for _, tc := range []struct {
		name string
		git  [][]string // arguments of git
		want bool
	}{
		{"no repository", nil, false},
		{"no index", [][]string{{"init"}}, false},
		{"another file", [][]string{{"init"}, {"add", "a"}}, false},
		{"tracked", [][]string{{"init"}, {"add", "a", name, "z"}}, true},
		{"tracked and ignored", [][]string{{"init"}, {"add", "-f", name}, {"add", ".gitignore"}}, true},
		{"committed", [][]string{{"init"}, {"add", "-f", name}, {"-c", "user.name=a", "-c", "user.email=a@b", "commit", "-m", "x"}}, true},
		{"intended", [][]string{{"init"}, {"add", "-f", "-N", name}}, true},
		{"shortened paths", [][]string{{"init"}, {"add", "a"}, {"update-index", "--index-version", "4"}}, true},
		{"a split index", [][]string{{"init"}, {"add", "-f", name}, {"update-index", "--split-index"}}, true},
		{"taken out", [][]string{{"init"}, {"add", "a", name}, {"rm", "--cached", "-f", name}}, false},
	} {
		dir := t.TempDir()
		for _, file := range []string{"a", name, "z", ".gitignore"} {
			must(t, os.WriteFile(filepath.Join(dir, file), []byte("x\n"), 0o600))
		}
		for _, args := range tc.git {
			c := exec.CommandContext(t.Context(), "git", args...)
			c.Dir, c.Env = dir, append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_SYSTEM="+os.DevNull)
			if out, err := c.CombinedOutput(); err != nil {
				t.Fatalf("%s: git %q: %v\n%s", tc.name, args, err, out)
			}
		}
		if got := Tracks(filepath.Join(dir, name)); got != tc.want {
			t.Errorf("%s: Tracks = %v, want %v", tc.name, got, tc.want)
		}
	}
}
