package workspace

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

const privateRemote = "git@github.com:acme/private.git"

// remoteConfig is a git configuration that any archive may contain.
const remoteConfig = "[core]\n\trepositoryformatversion = 0\n[remote \"origin\"]\n\turl = " + privateRemote + "\n"

// gitHome returns an empty directory for repositories, without symbolic links in its path.
func gitHome(t testing.TB) string {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("SKIPPED LOUDLY: there is no git")
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	return dir
}

func gitAt(t testing.TB, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=x", "-c", "user.email=x@example.com", "-c", "protocol.file.allow=always", "-c", "gc.auto=0"}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// newProject creates a repository with a remote and with empty commits.
func newProject(t testing.TB, dir, remote string, messages ...string) {
	t.Helper()
	must(t, os.MkdirAll(dir, 0o700))
	gitAt(t, dir, "init", "-q", "-b", "main")
	for _, message := range messages {
		gitAt(t, dir, "commit", "-q", "--allow-empty", "-m", message)
	}
	gitAt(t, dir, "remote", "add", "origin", remote)
}

// cloneOf creates a clone and sets its remote to privateRemote.
func cloneOf(t testing.TB, from, to string, args ...string) {
	t.Helper()
	gitAt(t, filepath.Dir(from), append(append([]string{"clone", "-q"}, args...), "file://"+from, to)...)
	gitAt(t, to, "remote", "set-url", "origin", privateRemote)
}

// look reads a directory and returns its Repo.
func look(t testing.TB, p *Projects, dir string) Repo {
	t.Helper()
	return p.settle(readCheckout(dir))
}

func openProjects(t testing.TB, file string) (*Projects, *bytes.Buffer) {
	t.Helper()
	var log bytes.Buffer
	return OpenProjects(file, slog.New(slog.NewTextHandler(&log, nil))), &log
}

// TestArchiveIsNoOthersProject checks that an unpacked archive does not get the remote of a
// bound project, whichever files of git it contains.
func TestArchiveIsNoOthersProject(t *testing.T) {
	dir := gitHome(t)
	app, lib := filepath.Join(dir, "work", "private"), filepath.Join(dir, "work", "lib")
	newProject(t, lib, "https://github.com/acme/lib", "lib")
	newProject(t, app, privateRemote, "first", "second")
	gitAt(t, app, "submodule", "--quiet", "add", lib, "lib")
	gitAt(t, app, "commit", "-qm", "third")
	gitAt(t, app, "worktree", "add", "-q", "-b", "x", filepath.Join(dir, "work", "tree"))
	file := filepath.Join(dir, "projects.json")
	p, _ := openProjects(t, file)
	if got := look(t, p, app); got.Remote != privateRemote {
		t.Fatalf("the project itself: %+v, want the remote %s", got, privateRemote)
	}
	head := gitAt(t, app, "rev-parse", "HEAD")
	git := filepath.Join(app, ".git")
	link := func(from, to string) {
		must(t, os.MkdirAll(filepath.Dir(from), 0o700))
		must(t, os.Symlink(to, from))
	}
	heads := map[string]string{".git/config": remoteConfig, ".git/HEAD": head + "\n", ".git/refs/heads/main": head + "\n"}
	with := func(more map[string]string) map[string]string {
		all := make(map[string]string)
		for _, m := range []map[string]string{heads, more} {
			for k, v := range m {
				all[k] = v
			}
		}
		return all
	}
	for i, tc := range []struct {
		name  string
		files map[string]string
		make  func(at string)
	}{
		{name: "only its address", files: with(nil)},
		{name: "a history of its own", make: func(at string) { newProject(t, at, privateRemote, "mine") }},
		{name: "a clone of it", make: func(at string) { cloneOf(t, app, at) }},
		{name: "a copy of it", make: func(at string) {
			must(t, os.CopyFS(at, os.DirFS(app)))
		}},
		{name: "its objects by a link", files: with(nil), make: func(at string) { link(filepath.Join(at, ".git", "objects"), filepath.Join(git, "objects")) }},
		{name: "its objects as alternates", files: with(map[string]string{".git/objects/info/alternates": filepath.Join(git, "objects") + "\n"})},
		{name: "its files by links", make: func(at string) {
			for _, name := range []string{"config", "HEAD", "refs", "objects"} {
				link(filepath.Join(at, ".git", name), filepath.Join(git, name))
			}
		}},
		{name: ".git is a link", make: func(at string) { link(filepath.Join(at, ".git"), git) }},
		{name: ".git leads to it", files: map[string]string{".git": "gitdir: ../../work/private/.git\n"}},
		{name: ".git leads to its worktree", files: map[string]string{".git": "gitdir: " + filepath.Join(git, "worktrees", "tree") + "\n"}},
		{name: ".git leads to its submodule", files: map[string]string{".git": "gitdir: ../../work/private/.git/modules/lib\n"}},
		{name: "commondir in .git", files: with(map[string]string{".git/commondir": git + "\n"})},
		{name: "a worktree of a made-up repository, with its commondir", files: map[string]string{".git": "gitdir: fake/worktrees/x\n", "fake/worktrees/x/commondir": git + "\n", "fake/worktrees/x/gitdir": "../../../.git\n", "fake/worktrees/x/HEAD": head, "fake/config": remoteConfig}},
		{name: "a worktree by links", files: map[string]string{".git": "gitdir: fake/worktrees/x\n", "fake/worktrees/x/commondir": "../..\n", "fake/worktrees/x/gitdir": "../../../.git\n", "fake/worktrees/x/HEAD": head, "fake/config": remoteConfig}, make: func(at string) {
			link(filepath.Join(at, "fake", "objects"), filepath.Join(git, "objects"))
		}},
		{name: "core.worktree and commondir", files: map[string]string{".git": "gitdir: fake\n", "fake/config": "[core]\n\tworktree = ..\n" + remoteConfig, "fake/commondir": git + "\n"}},
	} {
		for _, ignored := range []bool{false, true} {
			base := filepath.Join(dir, "downloads", fmt.Sprint(i, ignored))
			at := filepath.Join(base, "evil")
			write(t, at, tc.files)
			if tc.make != nil {
				tc.make(at)
			}
			write(t, at, map[string]string{"src/x": ""})
			if ignored {
				write(t, base, map[string]string{IgnoreFile: ""})
			}
			got := look(t, p, filepath.Join(at, "src"))
			if got.Remote != "" || got.Root != at || got.Ignore != ignored {
				t.Errorf("%s: %+v; want no remote, root %s, Ignore %v", tc.name, got, at, ignored)
			}
		}
	}
	if got := look(t, p, filepath.Join(dir, "work", "tree")); got.Remote != privateRemote {
		t.Errorf("its own worktree: %+v, want the remote %s", got, privateRemote)
	}
	if got := look(t, p, filepath.Join(app, "lib")); got.Remote != lib && got.Remote != "file://"+lib {
		t.Errorf("its own submodule: %+v, want the remote %s", got, lib)
	}
}

// TestJoinRefuses checks the reason of each error, and that a failed Join does not change
// the file.
func TestJoinRefuses(t *testing.T) {
	dir := gitHome(t)
	file := filepath.Join(dir, "projects.json")
	first, believed := filepath.Join(dir, "first"), filepath.Join(dir, "src", "app")
	newProject(t, first, privateRemote)
	newProject(t, believed, privateRemote)
	newProject(t, filepath.Join(dir, "local"), "/srv/git/secret.git")
	gitAt(t, dir, "init", "-q", "alone")
	write(t, dir, map[string]string{"plain/x": "", "stray/.git": "gitdir: ../first/.git\n", "torn.json": "{"})
	p, _ := openProjects(t, file)
	look(t, p, first)
	for _, tc := range []struct{ at, file, want string }{
		{"nowhere", file, "there is no directory"},
		{"plain/x", file, "is a file"},
		{"plain", file, "is in no git repository"},
		{"stray", file, "does not know this directory"},
		{"alone", file, "has no remote"},
		{"local", file, "is no address that names a project"},
		{"first", file, "belongs to the project github_repo:github.com/acme/private already"},
		{"src/app", file, "already"},
		{"first", filepath.Join(dir, "torn.json"), "unexpected end of JSON"},
		{"first", filepath.Join(dir, "no data_dir", "projects.json"), "no such file"},
	} {
		before, _ := os.ReadFile(tc.file)
		_, err := Join(filepath.Join(dir, tc.at), tc.file, []string{filepath.Join(dir, "src") + "/*", filepath.Join(first, "*")})
		if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("Join(%s): %v, want an error with %q", tc.at, err, tc.want)
		}
		if after, _ := os.ReadFile(tc.file); !bytes.Equal(before, after) {
			t.Errorf("Join(%s) changed the file from %s to %s", tc.at, before, after)
		}
	}
	if _, err := Join(filepath.Join(first, ".."), file, nil); err == nil {
		t.Error("Join of a directory above repositories: no error")
	}
	if j, err := Join(first, filepath.Join(dir, "new.json"), nil); err != nil || j.With != nil {
		t.Errorf("Join of the first directory: %+v, %v; want it alone", j, err)
	}
}

// TestArchiveThatCameFirst checks that an archive seen first gets the remote and the true
// clone does not, that the log names the remedy, and that workspace.clones corrects it.
func TestArchiveThatCameFirst(t *testing.T) {
	dir := gitHome(t)
	evil, app := filepath.Join(dir, "evil"), filepath.Join(dir, "app")
	newProject(t, evil, privateRemote, "mine")
	newProject(t, app, privateRemote, "first")
	p, log := openProjects(t, filepath.Join(dir, "projects.json"))
	if got := look(t, p, evil); got.Remote != privateRemote {
		t.Fatalf("the archive, seen first: %+v, want the remote %s", got, privateRemote)
	}
	for range 3 {
		if got := look(t, p, app); got.Remote != "" || got.Claimed != privateRemote || got.Root != app {
			t.Errorf("the true clone: %+v; want no remote, claimed %s, root %s", got, privateRemote, app)
		}
	}
	if n := strings.Count(log.String(), "level=WARN"); n != 1 || !strings.Contains(log.String(), "graphiti-proxy workspace join") || !strings.Contains(log.String(), "workspace=github_repo:github.com/acme/private") {
		t.Errorf("%d warnings, want one that names the workspace and the remedy: %s", n, log)
	}
	p.SetClones([]string{app})
	if got := look(t, p, app); got.Remote != privateRemote {
		t.Errorf("the true clone, when workspace.clones names it: %+v, want the remote %s", got, privateRemote)
	}
	if got := look(t, p, evil); got.Remote != "" {
		t.Errorf("the archive after that: %+v, want no remote", got)
	}
}

// TestDirectoryWithoutMemory checks that an ignored directory does not bind a project.
func TestDirectoryWithoutMemory(t *testing.T) {
	dir := gitHome(t)
	off, app := filepath.Join(dir, "off"), filepath.Join(dir, "app")
	newProject(t, off, privateRemote)
	newProject(t, app, privateRemote)
	write(t, off, map[string]string{IgnoreFile: ""})
	p, log := openProjects(t, filepath.Join(dir, "projects.json"))
	if got := look(t, p, off); !got.Ignore || got.Remote != privateRemote {
		t.Errorf("the ignored directory: %+v, want Ignore and the remote %s", got, privateRemote)
	}
	if got := look(t, p, app); got.Remote != privateRemote || log.Len() > 0 {
		t.Errorf("another directory with the remote: %+v, want the remote %s; log: %s", got, privateRemote, log)
	}
}

// TestProjectsSurviveARestart checks that bindings survive a restart, in a file that only
// its owner can read.
func TestProjectsSurviveARestart(t *testing.T) {
	dir := gitHome(t)
	evil, app, file := filepath.Join(dir, "evil"), filepath.Join(dir, "app"), filepath.Join(dir, "projects.json")
	newProject(t, evil, privateRemote, "mine")
	newProject(t, app, privateRemote, "first")
	p, _ := openProjects(t, file)
	look(t, p, app)
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("projects.json: %+v, %v; want mode 600", info, err)
	}
	p, _ = openProjects(t, file)
	if got := look(t, p, evil); got.Remote != "" {
		t.Errorf("the archive after a restart: %+v, want no remote", got)
	}
	if got := look(t, p, app); got.Remote != privateRemote {
		t.Errorf("the project after a restart: %+v, want the remote %s", got, privateRemote)
	}
}

// TestProjectsThatCannotBeKept checks that no directory gets a remote if the file of
// projects cannot be read or written, or is full.
func TestProjectsThatCannotBeKept(t *testing.T) {
	dir := gitHome(t)
	app := filepath.Join(dir, "app")
	newProject(t, app, privateRemote, "first")
	write(t, dir, map[string]string{"torn.json": `{"github_repo:`, "sub/x": ""})
	for _, file := range []string{filepath.Join(dir, "torn.json"), filepath.Join(dir, "sub"), filepath.Join(dir, "nowhere", "projects.json")} {
		p, log := openProjects(t, file)
		if got := look(t, p, app); got.Remote != "" || got.Claimed != privateRemote || got.Root != app {
			t.Errorf("with the file %s: %+v; want no remote, claimed %s, root %s", file, got, privateRemote, app)
		}
		if !strings.Contains(log.String(), "level=WARN") {
			t.Errorf("with the file %s: no warning in the log: %s", file, log)
		}
	}
	var full strings.Builder
	for i := range maxProjects {
		fmt.Fprintf(&full, ",\"%d\":{}", i)
	}
	write(t, dir, map[string]string{"full.json": "{" + full.String()[1:] + "}"})
	p, log := openProjects(t, filepath.Join(dir, "full.json"))
	if got := look(t, p, app); got.Remote != "" || !strings.Contains(log.String(), "projects are bound") {
		t.Errorf("with %d projects bound: %+v, want no remote and a warning; log: %s", maxProjects, got, log)
	}
}

// TestFirstDirectoryThatIsGone checks that no directory gets the remote of a deleted first
// directory until a person joins it, not even an archive at the same path. The first
// directory keeps the remote when it is moved or its history is rewritten.
func TestFirstDirectoryThatIsGone(t *testing.T) {
	dir := gitHome(t)
	app, moved, file := filepath.Join(dir, "app"), filepath.Join(dir, "moved"), filepath.Join(dir, "projects.json")
	p, log := openProjects(t, file)
	write(t, app, map[string]string{".git/config": remoteConfig})
	want := func(what, at string, ours bool) {
		t.Helper()
		if got := look(t, p, at); (got.Remote != "") != ours {
			t.Errorf("%s: %+v, want a remote: %v", what, got, ours)
		}
	}
	move := func(from, to string) {
		t.Helper()
		must(t, os.Rename(from, to))
	}
	want("without a commit", app, true)
	gitAt(t, app, "init", "-q", "-b", "main")
	gitAt(t, app, "commit", "-q", "--allow-empty", "-m", "first")
	want("with one", app, true)
	gitAt(t, app, "commit", "-q", "--amend", "--allow-empty", "-m", "rewritten")
	want("rewritten", app, true)
	if log.Len() > 0 {
		t.Errorf("the log before it is moved: %s, want nothing", log)
	}
	if here, err := directoryAt(filepath.Join(app, ".git")); err != nil || here.Birth == "" {
		t.Skipf("this file system does not say when a directory was created: %v", err)
	}
	move(app, moved)
	newProject(t, app, privateRemote, "mine")
	want("an archive at its path, seen first", app, false)
	want("moved", moved, true)
	want("the archive", app, false)
	if n := strings.Count(log.String(), "WARN"); n != 1 || !strings.Contains(log.String(), "graphiti-proxy workspace join") {
		t.Errorf("%d warnings, want one about the archive, with the remedy: %s", n, log)
	}
	if got := p.Apart(); len(got) != 1 || got[0] != (graphiti.Apart{Directory: app, Workspace: Key(privateRemote), Remedy: Joins}) {
		t.Errorf("kept apart: %+v, want the archive", got)
	}
	move(app, filepath.Join(dir, "archive"))
	move(moved, app)
	want("moved back", app, true)
	known, err := p.load()
	if bound := known[Key(privateRemote)]; err != nil || bound.Git != filepath.Join(app, ".git") || len(bound.Joined) > 0 {
		t.Errorf("the project is bound to %+v, %v; want %s alone", bound, err, filepath.Join(app, ".git"))
	}
	move(app, moved)
	cloneOf(t, moved, app)
	must(t, os.RemoveAll(moved))
	gitAt(t, app, "remote", "set-url", "origin", privateRemote)
	want("cloned again", app, false)
	if _, err := Join(app, file, nil); err != nil {
		t.Errorf("Join of the new clone: %v", err)
	}
	want("joined", app, true)
	if got := p.Apart(); len(got) > 1 || len(got) == 1 && got[0].Directory == app {
		t.Errorf("kept apart after it joined: %+v", got)
	}
}

// TestProjectWithoutRemote checks that the worktrees of a repository without a remote share
// its project, wherever they are, and that a moved repository keeps its project.
func TestProjectWithoutRemote(t *testing.T) {
	dir := gitHome(t)
	file := filepath.Join(dir, "projects.json")
	at := func(name string) string { return filepath.Join(dir, name) }
	p, log := openProjects(t, file)
	write(t, dir, map[string]string{"app/x": ""})
	gitAt(t, at("app"), "init", "-q", "-b", "main")
	gitAt(t, at("app"), "commit", "-q", "--allow-empty", "-m", "x")
	gitAt(t, at("app"), "worktree", "add", "-q", at("tree"))
	gitAt(t, at("app"), "worktree", "add", "-q", at("app/.claude/worktrees/x"))
	gitAt(t, dir, "clone", "-q", "--bare", at("app"), at("bare.git"))
	gitAt(t, at("bare.git"), "remote", "remove", "origin")
	gitAt(t, at("bare.git"), "worktree", "add", "-q", at("one"))
	gitAt(t, at("bare.git"), "worktree", "add", "-q", at("two"))
	gitAt(t, dir, "init", "-q", "-b", "main", at("super"))
	gitAt(t, at("super"), "submodule", "add", "-q", at("app"), "lib")
	gitAt(t, at("super/lib"), "remote", "remove", "origin")
	gitAt(t, at("super/lib"), "worktree", "add", "-q", at("libtree"))
	// An archive whose configuration claims the checkout of another repository.
	gitAt(t, dir, "clone", "-q", "--bare", at("app"), at("evil.git"))
	gitAt(t, at("evil.git"), "remote", "remove", "origin")
	gitAt(t, at("evil.git"), "worktree", "add", "-q", at("eviltree"))
	gitAt(t, at("evil.git"), "config", "core.bare", "false")
	gitAt(t, at("evil.git"), "config", "core.worktree", at("app"))
	want := func(name, main string) {
		t.Helper()
		if got := look(t, p, at(name)); got.Key() != "path:"+at(main) {
			t.Errorf("%s belongs to %q, want path:%s", name, got.Key(), at(main))
		}
	}
	for name, main := range map[string]string{
		"app": "app", "tree": "app", "app/.claude/worktrees/x": "app", "one": "bare.git", "two": "bare.git",
		"super/lib": "super/lib", "libtree": "super/lib", "eviltree": "evil.git",
	} {
		want(name, main)
	}
	if here, err := directoryAt(filepath.Join(dir, "app", ".git")); err != nil || here.Birth == "" {
		t.Skipf("this file system does not say when a directory was created: %v", err)
	}
	must(t, os.Rename(at("app"), at("renamed")))
	want("renamed", "app")
	write(t, dir, map[string]string{"app/x": ""})
	gitAt(t, at("app"), "init", "-q", "-b", "main")
	want("app", "app/.git") // the project of this path has moved
	want("renamed", "app")
	p, _ = openProjects(t, file)
	want("renamed", "app")
	if log.Len() > 0 {
		t.Errorf("logged %s, want nothing", log)
	}
}

// TestDeviceThatIsNumberedAgain checks that a directory is recognized if its device has
// another number, as after a restart of the machine.
func TestDeviceThatIsNumberedAgain(t *testing.T) {
	was := directory{Git: "/app/.git", Inode: "64769:12", Birth: "1.5"}
	for other, want := range map[directory]struct{ is, became bool }{
		{"/app/.git", "42:12", "1.5"}:      {is: true},
		{"/app/.git", "64769:13", "1.5"}:   {},
		{"/other/.git", "64769:12", "1.5"}: {became: true},
		{"/other/.git", "42:12", "1.5"}:    {became: true},
		{"/other/.git", "64769:12", "1.6"}: {}, // a new directory with the inode of a deleted one
		{"/other/.git", "64769:13", "1.5"}: {},
		{"/other/.git", "64769:12", ""}:    {},
	} {
		if is, became := was.is(other), was.became(other); is != want.is || became != want.became {
			t.Errorf("%+v is %+v: %v, became it: %v, want %+v", was, other, is, became, want)
		}
	}
	if (directory{"/app/.git", "1:2", ""}).became(directory{"/other/.git", "1:2", ""}) {
		t.Error("a directory without a birth became another")
	}
}
