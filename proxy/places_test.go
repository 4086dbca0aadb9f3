package proxy

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func git(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=x", "-c", "user.email=x@example.com", "-c", "protocol.file.allow=always"}, args...)...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

// TestReposAsGitMakesThem: clones, worktrees, submodules, packed references.
func TestReposAsGitMakesThem(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("SKIPPED LOUDLY: there is no git")
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	lib, app := filepath.Join(dir, "lib"), filepath.Join(dir, "app")
	for _, d := range []string{lib, app, filepath.Join(app, "deep", "er"), filepath.Join(dir, "plain"), filepath.Join(dir, "off", "sub")} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	git(t, lib, "init", "-b", "main")
	git(t, lib, "commit", "--allow-empty", "-m", "x")
	git(t, app, "init", "-b", "main")
	git(t, app, "remote", "add", "fork", "https://example.com/fork/app.git")
	git(t, app, "remote", "add", "origin", "git@github.com:acme/app.git")
	git(t, app, "submodule", "add", lib, "vendor/lib")
	git(t, app, "commit", "-m", "x")
	git(t, filepath.Join(app, "vendor", "lib"), "remote", "set-url", "origin", "https://github.com/acme/lib")
	git(t, app, "worktree", "add", "-b", "feature/x", filepath.Join(dir, "tree"))
	if err := os.WriteFile(filepath.Join(dir, "off", ignoreFile), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("git", "-C", app, "rev-parse", "HEAD").Output()
	if err != nil {
		t.Fatal(err)
	}
	head := string(out[:40])
	places := NewPlaces()
	check := func(name, at string, want Repo) {
		t.Helper()
		got := places.Find(filepath.Join(dir, at))
		if want.Commit == "any" {
			got.Commit = "any"
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	check("a clone", "app", Repo{Root: app, Remote: "git@github.com:acme/app.git", Branch: "main", Commit: head})
	check("below it", "app/deep/er", Repo{Root: app, Remote: "git@github.com:acme/app.git", Branch: "main", Commit: head})
	check("a worktree", "tree", Repo{Root: filepath.Join(dir, "tree"), Remote: "git@github.com:acme/app.git", Branch: "feature/x", Commit: head})
	check("a submodule", "app/vendor/lib", Repo{Root: filepath.Join(app, "vendor", "lib"), Remote: "https://github.com/acme/lib", Branch: "main", Commit: "any"})
	check("without a remote", "lib", Repo{Root: lib, Branch: "main", Commit: "any"})
	check("no repository", "plain", Repo{Root: filepath.Join(dir, "plain")})
	check("memory is turned off there", "off/sub", Repo{Root: filepath.Join(dir, "off", "sub"), Ignore: true})
	check("not there", "nowhere", Repo{})
	git(t, app, "pack-refs", "--all")
	places = NewPlaces()
	check("packed references", "app", Repo{Root: app, Remote: "git@github.com:acme/app.git", Branch: "main", Commit: head})
}

// TestSlowFileSystem is waited for no longer than a moment, and only once.
func TestSlowFileSystem(t *testing.T) {
	answer := make(chan struct{})
	reads := make(chan string, 10)
	p := NewPlaces()
	p.read = func(dir string) Repo { reads <- dir; <-answer; return Repo{Root: dir} }
	for range 3 {
		if r := p.Find("/slow"); r.Root != "" {
			t.Error(r)
		}
	}
	close(answer)
	for range 1000 {
		if p.Find("/slow").Root == "/slow" {
			break
		}
		time.Sleep(time.Millisecond)
	}
	if p.Find("/slow").Root != "/slow" || len(reads) != 1 {
		t.Errorf("%d reads", len(reads))
	}
}

func TestMatch(t *testing.T) {
	for _, tc := range []struct {
		pattern, s string
		want       bool
	}{
		{"github_repo:github.com/acme/*", "github_repo:github.com/acme/app", true},
		{"github_repo:github.com/acme/*", "github_repo:github.com/acmex/app", false},
		{"/home/me/*", "/home/me/a/b", true},
		{"*/secret/*", "/home/secret/x", true},
		{"*/secret/*", "/home/secrets/x", false},
		{"*", "", true},
		{"a", "a", true},
		{"a", "ab", false},
		{"a*b*c", "aXbYc", true},
		{"a*b*c", "acb", false},
	} {
		if got := match(tc.pattern, tc.s); got != tc.want {
			t.Errorf("match(%q, %q) = %v", tc.pattern, tc.s, got)
		}
	}
}
