package workspace

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestReposAsGitMakesThem checks clones, worktrees and submodules that git
// has created.
func TestReposAsGitMakesThem(t *testing.T) {
	dir := gitHome(t)
	lib, app := filepath.Join(dir, "lib"), filepath.Join(dir, "app")
	write(t, dir, map[string]string{"lib/x": "", "app/deep/er/x": "", "plain/x": "", "off/sub/x": "", "off/" + IgnoreFile: ""})
	gitAt(t, lib, "init", "-b", "main")
	gitAt(t, lib, "commit", "--allow-empty", "-m", "x")
	gitAt(t, app, "init", "-b", "main")
	gitAt(t, app, "remote", "add", "fork", "https://example.com/fork/app.git")
	gitAt(t, app, "remote", "add", "origin", "git@github.com:acme/app.git")
	gitAt(t, app, "submodule", "add", lib, "vendor/lib")
	gitAt(t, app, "commit", "-m", "x")
	gitAt(t, filepath.Join(app, "vendor", "lib"), "remote", "set-url", "origin", "https://github.com/acme/lib")
	gitAt(t, app, "worktree", "add", "-b", "feature/x", filepath.Join(dir, "tree"))
	places := NewPlaces()
	check := func(name, at string, want Repo) {
		t.Helper()
		got, ok := places.Find(filepath.Join(dir, at))
		if want.Root != "" {
			want.Dir = filepath.Join(dir, at)
		}
		if !ok {
			t.Errorf("%s: Find(%s): ok is false, want true", name, at)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: Find(%s) (-want +got):\n%s", name, at, diff)
		}
	}
	check("a clone", "app", Repo{Root: app, Main: app, Remote: "git@github.com:acme/app.git", Branch: "main"})
	check("below it", "app/deep/er", Repo{Root: app, Main: app, Remote: "git@github.com:acme/app.git", Branch: "main"})
	check("a worktree", "tree", Repo{Root: filepath.Join(dir, "tree"), Main: app, Remote: "git@github.com:acme/app.git", Branch: "feature/x"})
	check("a submodule", "app/vendor/lib", Repo{Root: filepath.Join(app, "vendor", "lib"), Main: filepath.Join(app, "vendor", "lib"), Remote: "https://github.com/acme/lib", Branch: "main"})
	check("without a remote", "lib", Repo{Root: lib, Main: lib, Branch: "main"})
	check("no repository", "plain", Repo{Root: filepath.Join(dir, "plain"), Main: filepath.Join(dir, "plain")})
	check("memory is turned off there", "off/sub", Repo{Root: filepath.Join(dir, "off", "sub"), Main: filepath.Join(dir, "off", "sub"), Ignore: true})
	check("not there", "nowhere", Repo{})
}

// TestIgnoreFileCountsBelow checks that an ignore file counts for all directories below its
// own, through repositories and symbolic links, and for worktrees and submodules elsewhere.
func TestIgnoreFileCountsBelow(t *testing.T) {
	dir := gitHome(t)
	write(t, dir, map[string]string{"lib/x": "", "app/x": "", "app/deep/x": "", "client/clone/x": "", "client/" + IgnoreFile: ""})
	app := filepath.Join(dir, "app")
	for _, repo := range []string{"lib", "app", "client/clone"} {
		gitAt(t, filepath.Join(dir, repo), "init", "-b", "main")
		gitAt(t, filepath.Join(dir, repo), "commit", "--allow-empty", "-m", "x")
	}
	gitAt(t, app, "submodule", "add", filepath.Join(dir, "lib"), "vendor/lib")
	gitAt(t, app, "commit", "-m", "x")
	gitAt(t, app, "worktree", "add", "-b", "feature", filepath.Join(dir, "tree"))
	gitAt(t, filepath.Join(dir, "tree"), "submodule", "update", "--init")
	for link, to := range map[string]string{"into": "app/deep", "app/outof": "lib"} {
		must(t, os.Symlink(filepath.Join(dir, to), filepath.Join(dir, link)))
	}
	write(t, dir, map[string]string{"app/" + IgnoreFile: ""})
	for _, tc := range []struct {
		name, at string
		want     bool
	}{
		{"the repository", "app", true},
		{"a directory in it", "app/deep", true},
		{"a submodule", "app/vendor/lib", true},
		{"a worktree elsewhere", "tree", true},
		{"a submodule there", "tree/vendor/lib", true},
		{"a repository below a directory", "client/clone", true},
		{"a link into it", "into", true},
		{"a link out of it, named by its way", "app/outof", true},
		{"what the submodule is a clone of", "lib", false},
	} {
		if repo, ok := NewPlaces().Find(filepath.Join(dir, tc.at)); repo.Ignore != tc.want || !ok || repo.Dir == "" {
			t.Errorf("%s: Find(%s): %+v, %v; want Ignore %v", tc.name, tc.at, repo, ok, tc.want)
		}
	}
}

// TestFileSystemInTrouble checks that a directory that cannot be read counts as ignored.
func TestFileSystemInTrouble(t *testing.T) {
	loop := filepath.Join(t.TempDir(), "loop")
	must(t, os.Symlink(loop, loop))
	if repo, ok := NewPlaces().Find(loop); !ok || !repo.Ignore {
		t.Errorf("Find of a loop of links: %+v, %v; want Ignore", repo, ok)
	}
}

// TestFileSystemThatHangs checks that the number of reads in a hung file system is limited,
// and that each directory is read once, even if the cache overflows meanwhile.
func TestFileSystemThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer := make(chan struct{})
		var hung atomic.Int32
		p := NewPlaces()
		p.Read = func(dir string) Repo {
			if strings.HasPrefix(dir, "/hung") {
				hung.Add(1)
				<-answer
			}
			return Repo{Root: dir}
		}
		if _, ok := p.Find("/hung"); ok {
			t.Error("Find in a file system that hangs: ok is true")
		}
		for i := range maxPlaces + 10 { // more than the cache holds
			if _, ok := p.Find(fmt.Sprint("/quick/", i)); !ok {
				t.Fatalf("Find(/quick/%d): ok is false", i)
			}
		}
		time.Sleep(2 * placeFresh)
		if _, ok := p.Find("/hung"); ok || hung.Load() != 1 {
			t.Errorf("a second Find of /hung: %v, and %d reads; want false, 1", ok, hung.Load())
		}
		for i := range 2 * maxLooks {
			p.Find(fmt.Sprint("/hung/", i))
		}
		if n := hung.Load(); n != maxLooks {
			t.Errorf("%d reads at once, want %d", n, maxLooks)
		}
		close(answer)
		synctest.Wait()
		if _, ok := p.Find("/hung/1000"); !ok {
			t.Error("Find(/hung/1000) when the file system has answered: ok is false")
		}
	})
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
			t.Errorf("match(%q, %q) = %v, want %v", tc.pattern, tc.s, got, tc.want)
		}
	}
}
