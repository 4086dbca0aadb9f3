package workspace

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/internal/helptest"
)

var must = helptest.Must

// write creates files in a directory.
func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		must(t, os.MkdirAll(filepath.Dir(path), 0o700))
		must(t, os.WriteFile(path, []byte(text), 0o600))
	}
}

const repoHead = "[core]\n\trepositoryformatversion = 0\n"

// TestOriginAsGitReadsIt checks that originOf returns the same URL as git for each
// notation, and that the URL has the expected key.
func TestOriginAsGitReadsIt(t *testing.T) {
	const app = "github_repo:github.com/acme/app"
	for _, tc := range []struct {
		name, config string
		key          string // or "" if the URL names no repository
		differs      bool   // git returns another URL
	}{
		{name: "as git writes it", config: "[remote \"origin\"]\n\turl = https://github.com/acme/app.git\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n", key: app},
		{name: "comment behind it", config: "[remote \"origin\"]\n\turl = https://github.com/acme/app # mine\n", key: app},
		{name: "the other comment", config: "[remote \"origin\"]\n\turl = https://github.com/acme/app;mine\n", key: app},
		{name: "quotes", config: "[remote \"origin\"]\n\turl = \"https://github.com/acme/app\" \n", key: app},
		{name: "quotes around a comment's sign", config: "[remote \"origin\"]\n\turl = https://host.io/acme/\"a#b;c\" # x\n", key: "github_repo:host.io/acme/a"},
		{name: "escapes", config: "[remote \"origin\"]\n\turl = https://host.io/acme/\\\"app\\\\\n", key: `github_repo:host.io/acme/"app\`},
		{name: "a line that goes on", config: "[remote \"origin\"]\n\turl = https://github.com/\\\nacme/app\n", key: app},
		{name: "lines as Windows ends them", config: "[remote \"origin\"]\r\n\turl = https://github.com/acme/app\r\n", key: app},
		{name: "a mark of UTF-8", config: "\xef\xbb\xbf[remote \"origin\"]\n\turl = https://github.com/acme/app\n", key: app},
		{name: "comment behind the section", config: "[remote \"origin\"] # mine\n\turl = https://github.com/acme/app\n", key: app},
		{name: "on the section's line", config: "[remote \"origin\"] url = https://github.com/acme/app\n", key: app},
		{name: "in capitals", config: "[REMOTE \"origin\"]\n\tURL=https://github.com/acme/app\n", key: app},
		{name: "in the old way", config: "[remote.Origin]\n\turl = https://github.com/acme/app\n", key: app},
		{name: "a comment that is none", config: "[remote \"other\"]\n\turl = https://github.com/acme/no\n# [remote \"origin\"]\n#\turl = https://github.com/acme/no\n[remote \"origin\"]\n\turl = https://github.com/acme/app\n", key: app},
		{name: "a flag before it", config: "[remote \"origin\"]\n\tmirror\n\tprune\n\turl = https://github.com/acme/app\n", key: app},
		{name: "two addresses", config: "[remote \"origin\"]\n\turl = https://github.com/acme/app\n\turl = https://github.com/acme/no\n", key: app},
		{name: "a quoted name", config: "[remote \"o\\\"r]i\\\\gin\"]\n\turl = https://github.com/acme/no\n[remote \"origin\"]\n\turl = https://github.com/acme/app\n", key: app},
		{name: "no scheme, no user", config: "[remote \"origin\"]\n\turl = github.com:acme/app.git\n", key: app},
		{name: "for pushes only", config: "[remote \"origin\"]\n\turl = https://github.com/acme/app\n[url \"ssh://git@push.io/\"]\n\tpushInsteadOf = https://github.com/\n", key: app},
		{name: "a mirror is not where it came from", config: "[remote \"origin\"]\n\turl = https://github.com/acme/app\n[url \"https://mirror.io/github.com/\"]\n\tinsteadOf = https://github.com/\n", key: app, differs: true},
		{name: "nor is a host of ssh's configuration", config: "[remote \"origin\"]\n\turl = git@github.com:acme/app\n[url \"git@github-work:\"]\n\tinsteadOf = git@github.com:\n", key: app, differs: true},
		{name: "a host without a domain", config: "[remote \"origin\"]\n\turl = git@forge:acme/App\n", key: "github_repo:forge/acme/App"},
		{name: "a directory", config: "[remote \"origin\"]\n\turl = /srv/git/app.git\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			home := t.TempDir()
			t.Setenv("HOME", home)
			t.Setenv("XDG_CONFIG_HOME", "")
			repo := filepath.Join(home, "app")
			config, mark := strings.CutPrefix(tc.config, "\xef\xbb\xbf")
			if config = repoHead + config; mark {
				config = "\xef\xbb\xbf" + config
			}
			write(t, repo, map[string]string{".git/config": config, ".git/HEAD": "ref: refs/heads/main\n", ".git/objects/x": "", ".git/refs/x": ""})
			git := readConfig(filepath.Join(repo, ".git"))
			got := git.origin()
			if key, _ := graphiti.WorkspaceKey(got); key != tc.key && (tc.key != "" || strings.HasPrefix(key, graphiti.RepoPrefix)) {
				t.Errorf("the key of the origin %q is %q, want %q", got, key, tc.key)
			}
			if _, err := exec.LookPath("git"); err != nil || tc.differs {
				return
			}
			cmd := exec.Command("git", "-C", repo, "remote", "get-url", "origin")
			if tc.name == "in the old way" { // git remote may not find this section
				cmd = exec.Command("git", "-C", repo, "config", "remote.origin.url")
			}
			out, err := cmd.CombinedOutput()
			if want := strings.TrimSuffix(string(out), "\n"); err != nil || got != want {
				t.Errorf("origin: %q, want what git says: %q (%v)", got, want, err)
			}
		})
	}
}

// FuzzGitConfig checks that the reading of any file ends.
func FuzzGitConfig(f *testing.F) {
	f.Add([]byte("[remote \"origin\"] # x\n\turl = \"a\\\"b\" \\\n c ; d\n[include]\npath=config\n"))
	f.Add([]byte("[a.B] c\n[url \"x\\\n= 1\\"))
	git := f.TempDir()
	f.Fuzz(func(t *testing.T, config []byte) {
		must(t, os.WriteFile(filepath.Join(git, "config"), config, 0o600))
		readConfig(git)
	})
}
