package workspace

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

const privateRemote = "git@github.com:acme/private.git"

// remoteConfig is what any archive can hold.
const remoteConfig = "[core]\n\trepositoryformatversion = 0\n[remote \"origin\"]\n\turl = " + privateRemote + "\n"

// gitHome is an empty directory for repositories, without symbolic links.
func gitHome(t testing.TB) string {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("SKIPPED LOUDLY: there is no git")
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func gitAt(t testing.TB, dir string, when time.Time, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=x", "-c", "user.email=x@example.com", "-c", "protocol.file.allow=always", "-c", "gc.auto=0"}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
	if !when.IsZero() {
		cmd.Env = append(cmd.Env, "GIT_COMMITTER_DATE="+when.Format(time.RFC3339))
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// newProject is a repository with a remote that has all of its history.
func newProject(t testing.TB, dir, remote string, messages ...string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	gitAt(t, dir, time.Time{}, "init", "-q", "-b", "main")
	for _, message := range messages {
		gitAt(t, dir, time.Time{}, "commit", "-q", "--allow-empty", "-m", message)
	}
	gitAt(t, dir, time.Time{}, "remote", "add", "origin", remote)
	if len(messages) > 0 {
		publish(t, dir)
	}
}

// publish makes as if the newest commit had been pushed.
func publish(t testing.TB, dir string) {
	t.Helper()
	gitAt(t, dir, time.Time{}, "update-ref", "refs/remotes/origin/main", "HEAD")
}

// cloneOf is a clone that says it is from the same remote.
func cloneOf(t testing.TB, from, to string, args ...string) {
	t.Helper()
	gitAt(t, filepath.Dir(from), time.Time{}, append(append([]string{"clone", "-q"}, args...), "file://"+from, to)...)
	gitAt(t, to, time.Time{}, "remote", "set-url", "origin", privateRemote)
}

// look is a fresh look at a directory.
func look(t testing.TB, p *Projects, dir string) Repo {
	t.Helper()
	return p.settle(readCheckout(dir))
}

func openProjects(t testing.TB, file string) (*Projects, *bytes.Buffer) {
	t.Helper()
	var log bytes.Buffer
	return OpenProjects(file, slog.New(slog.NewTextHandler(&log, nil))), &log
}

// TestArchiveIsNoOthersProject: the project is bound, and an archive that was
// unpacked elsewhere claims to be it in every way that there is.
func TestArchiveIsNoOthersProject(t *testing.T) {
	dir := gitHome(t)
	app, lib := filepath.Join(dir, "work", "private"), filepath.Join(dir, "work", "lib")
	newProject(t, lib, "https://github.com/acme/lib", "lib")
	newProject(t, app, privateRemote, "first", "second")
	gitAt(t, app, time.Time{}, "submodule", "--quiet", "add", lib, "lib")
	gitAt(t, app, time.Time{}, "commit", "-qm", "third")
	publish(t, app)
	gitAt(t, app, time.Time{}, "worktree", "add", "-q", "-b", "x", filepath.Join(dir, "work", "tree"))
	file := filepath.Join(dir, "projects.json")
	p, _ := openProjects(t, file)
	if got := look(t, p, app); got.Remote != privateRemote {
		t.Fatalf("the project itself: %+v", got)
	}
	head := gitAt(t, app, time.Time{}, "rev-parse", "HEAD")
	bound, _, _ := p.find(Key(privateRemote))
	if len(bound.Commit) != 40 {
		t.Fatalf("%+v", bound)
	}
	git := filepath.Join(app, ".git")
	link := func(from, to string) {
		if err := os.MkdirAll(filepath.Dir(from), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(to, from); err != nil {
			t.Fatal(err)
		}
	}
	heads := map[string]string{".git/config": remoteConfig, ".git/HEAD": head + "\n", ".git/refs/remotes/origin/main": head + "\n"}
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
		{name: "an object with the name of one", files: with(map[string]string{".git/objects/" + bound.Commit[:2] + "/" + bound.Commit[2:]: "x\x9c not that commit"})},
		{name: "another commit under that name", make: func(at string) {
			newProject(t, at, privateRemote, "mine")
			mine := gitAt(t, at, time.Time{}, "rev-parse", "HEAD")
			b, err := os.ReadFile(filepath.Join(at, ".git", "objects", mine[:2], mine[2:]))
			if err != nil {
				t.Fatal(err)
			}
			write(t, at, map[string]string{".git/objects/" + bound.Commit[:2] + "/" + bound.Commit[2:]: string(b)})
		}},
		{name: "its objects by a link", files: with(nil), make: func(at string) { link(filepath.Join(at, ".git", "objects"), filepath.Join(git, "objects")) }},
		{name: "its objects by a relative link", files: with(nil), make: func(at string) { link(filepath.Join(at, ".git", "objects"), "../../../work/private/.git/objects") }},
		{name: "its loose objects by links", files: with(nil), make: func(at string) {
			link(filepath.Join(at, ".git", "objects", bound.Commit[:2]), filepath.Join(git, "objects", bound.Commit[:2]))
		}},
		{name: "its objects as alternates", files: with(map[string]string{".git/objects/info/alternates": filepath.Join(git, "objects") + "\n"})},
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
			write(t, at, map[string]string{"src/x": ""})
			if tc.make != nil {
				tc.make(at)
			}
			if ignored {
				write(t, base, map[string]string{IgnoreFile: ""})
			}
			got := look(t, p, filepath.Join(at, "src"))
			if got.Remote != "" || got.Root != at || got.Ignore != ignored {
				t.Errorf("%s: %+v", tc.name, got)
			}
		}
	}
	if got := look(t, p, filepath.Join(dir, "work", "tree")); got.Remote != privateRemote {
		t.Errorf("its own worktree: %+v", got)
	}
	if got := look(t, p, filepath.Join(app, "lib")); got.Remote != lib && got.Remote != "file://"+lib {
		t.Errorf("its own submodule: %+v", got)
	}
}

// TestClonesShareAProject: those that hold its history, in whatever shape.
func TestClonesShareAProject(t *testing.T) {
	dir := gitHome(t)
	app := filepath.Join(dir, "app")
	var messages []string
	for i := range 40 { // of which git makes deltas
		messages = append(messages, fmt.Sprint(i, strings.Repeat(" a long message that hardly changes", 20)))
	}
	newProject(t, app, privateRemote, messages...)
	p, log := openProjects(t, filepath.Join(dir, "projects.json"))
	if got := look(t, p, app); got.Remote != privateRemote {
		t.Fatalf("%+v", got)
	}
	for name, args := range map[string][]string{"a clone": nil, "a bare one's worktree": {"--bare"}, "a partial one": {"--filter=blob:none"}} {
		to := filepath.Join(dir, name)
		cloneOf(t, app, to, args...)
		if len(args) > 0 && args[0] == "--bare" {
			gitAt(t, to, time.Time{}, "worktree", "add", "-q", "-b", "y", filepath.Join(dir, "tree"))
			to = filepath.Join(dir, "tree")
		}
		gitAt(t, to, time.Time{}, "repack", "-qadf", "--depth=50")
		if got := look(t, p, to); got.Remote != privateRemote {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if log.Len() > 0 {
		t.Errorf("%s", log)
	}
	shallow := filepath.Join(dir, "shallow")
	cloneOf(t, app, shallow, "--depth=1")
	gitAt(t, shallow, time.Time{}, "commit", "-q", "--allow-empty", "-m", "x")
	bound, _, _ := p.find(Key(privateRemote))
	if holds := look(t, p, shallow).Remote != ""; holds {
		t.Errorf("a shallow clone without %s", bound.Commit)
	}
	if !strings.Contains(log.String(), "workspace.clones") {
		t.Errorf("no remedy: %s", log)
	}
	gitAt(t, shallow, time.Time{}, "remote", "set-url", "origin", "file://"+app)
	gitAt(t, shallow, time.Time{}, "fetch", "-q", "--unshallow")
	gitAt(t, shallow, time.Time{}, "remote", "set-url", "origin", privateRemote)
	if got := look(t, p, shallow); got.Remote != privateRemote {
		t.Errorf("after the remedy: %+v", got)
	}
}

// TestOwnNameOfTheMainBranch: what binds a project need not be called main.
func TestOwnNameOfTheMainBranch(t *testing.T) {
	for _, packed := range []bool{false, true} {
		dir := gitHome(t)
		app, clone := filepath.Join(dir, "app"), filepath.Join(dir, "clone")
		newProject(t, app, privateRemote, "first", "second")
		for _, args := range [][]string{
			{"update-ref", "refs/remotes/origin/release/1.0", "HEAD"}, {"update-ref", "refs/remotes/origin/develop", "HEAD"},
			{"update-ref", "-d", "refs/remotes/origin/main"}, {"checkout", "-q", "-b", "mine"},
		} {
			gitAt(t, app, time.Time{}, args...)
		}
		if packed {
			gitAt(t, app, time.Time{}, "pack-refs", "--all")
		}
		cloneOf(t, app, clone)
		p, log := openProjects(t, filepath.Join(dir, "projects.json"))
		for _, at := range []string{app, clone} {
			if got := look(t, p, at); got.Remote != privateRemote {
				t.Errorf("packed %v: %+v: %s", packed, got, log)
			}
		}
	}
}

// TestArchiveThatCameFirst keeps the true clone out, which is told what to do.
func TestArchiveThatCameFirst(t *testing.T) {
	dir := gitHome(t)
	evil, app := filepath.Join(dir, "evil"), filepath.Join(dir, "app")
	newProject(t, evil, privateRemote, "mine")
	newProject(t, app, privateRemote, "first")
	p, log := openProjects(t, filepath.Join(dir, "projects.json"))
	if got := look(t, p, evil); got.Remote != privateRemote {
		t.Fatalf("%+v", got)
	}
	for range 3 {
		if got := look(t, p, app); got.Remote != "" || got.Claimed != privateRemote || got.Root != app {
			t.Errorf("%+v", got)
		}
	}
	if n := strings.Count(log.String(), "level=WARN"); n != 1 || !strings.Contains(log.String(), "workspace.clones") || !strings.Contains(log.String(), "workspace=github_repo:github.com/acme/private") {
		t.Errorf("%d warnings: %s", n, log)
	}
	p.SetClones([]string{app})
	if got := look(t, p, app); got.Remote != privateRemote {
		t.Errorf("believed: %+v", got)
	}
	if got := look(t, p, evil); got.Remote != "" {
		t.Errorf("the archive still is it: %+v", got)
	}
}

// TestProjectsSurviveARestart, and no other than their owner can read them.
func TestProjectsSurviveARestart(t *testing.T) {
	dir := gitHome(t)
	evil, app, file := filepath.Join(dir, "evil"), filepath.Join(dir, "app"), filepath.Join(dir, "projects.json")
	newProject(t, evil, privateRemote, "mine")
	newProject(t, app, privateRemote, "first")
	p, _ := openProjects(t, file)
	look(t, p, app)
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v, %v", info, err)
	}
	p, _ = openProjects(t, file)
	if got := look(t, p, evil); got.Remote != "" {
		t.Errorf("the archive: %+v", got)
	}
	if got := look(t, p, app); got.Remote != privateRemote {
		t.Errorf("the project: %+v", got)
	}
}

// TestProjectsThatCannotBeKept or read are nobody's.
func TestProjectsThatCannotBeKept(t *testing.T) {
	dir := gitHome(t)
	app := filepath.Join(dir, "app")
	newProject(t, app, privateRemote, "first")
	write(t, dir, map[string]string{"torn.json": `{"github_repo:`, "sub/x": ""})
	for _, file := range []string{filepath.Join(dir, "torn.json"), filepath.Join(dir, "sub"), filepath.Join(dir, "nowhere", "projects.json")} {
		p, log := openProjects(t, file)
		if got := look(t, p, app); got.Remote != "" || got.Claimed != privateRemote || got.Root != app {
			t.Errorf("%s: %+v", file, got)
		}
		if !strings.Contains(log.String(), "level=WARN") {
			t.Errorf("%s: nothing is said", file)
		}
	}
	p, _ := openProjects(t, "")
	for i := range maxProjects {
		p.known[fmt.Sprint(i)] = project{}
	}
	if got := look(t, p, app); got.Remote != "" {
		t.Errorf("more than are kept: %+v", got)
	}
}

// TestHistoryThatChanges in the directory that was first does not take the
// project from it; nothing published yet, it is not shared.
func TestHistoryThatChanges(t *testing.T) {
	dir := gitHome(t)
	app, clone := filepath.Join(dir, "app"), filepath.Join(dir, "clone")
	p, _ := openProjects(t, filepath.Join(dir, "projects.json"))
	write(t, app, map[string]string{".git/config": remoteConfig})
	want := func(what, at string, ours bool) {
		t.Helper()
		if got := look(t, p, at); (got.Remote != "") != ours {
			t.Errorf("%s: %+v", what, got)
		}
	}
	want("without a commit", app, true)
	gitAt(t, app, time.Time{}, "init", "-q", "-b", "main")
	gitAt(t, app, time.Time{}, "commit", "-q", "--allow-empty", "-m", "first")
	cloneOf(t, app, clone)
	want("not published", app, true)
	want("a clone of what is not published", clone, false)
	publish(t, app)
	want("published", app, true)
	want("a clone of that", clone, true)
	gitAt(t, app, time.Time{}, "commit", "-q", "--amend", "--allow-empty", "-m", "rewritten")
	publish(t, app)
	gitAt(t, app, time.Time{}, "reflog", "expire", "--expire=now", "--all")
	gitAt(t, app, time.Time{}, "gc", "-q", "--prune=now")
	want("rewritten", app, true)
	want("a clone of what was", clone, false)
	newProject(t, filepath.Join(dir, "other"), privateRemote, "mine") // before inodes are free to be used again
	if err := os.RemoveAll(app); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(dir, "other"), app); err != nil {
		t.Fatal(err)
	}
	want("an archive at its path", app, false)
}

// TestOneOfManyBindsAProject: those that are seen at the same time.
func TestOneOfManyBindsAProject(t *testing.T) {
	dir := gitHome(t)
	p, _ := openProjects(t, filepath.Join(dir, "projects.json"))
	const many = 8
	for i := range many {
		newProject(t, filepath.Join(dir, fmt.Sprint(i)), privateRemote, fmt.Sprint("mine ", i))
	}
	var all sync.WaitGroup
	ours := make([]bool, many)
	for i := range many {
		all.Go(func() { ours[i] = look(t, p, filepath.Join(dir, fmt.Sprint(i))).Remote != "" })
	}
	all.Wait()
	n := 0
	for _, one := range ours {
		if one {
			n++
		}
	}
	if n != 1 {
		t.Errorf("%d of them are the project", n)
	}
}

// TestWitnessIsAMonthOld where the history goes back so far: clones that were
// not updated lately hold it too.
func TestWitnessIsAMonthOld(t *testing.T) {
	dir := gitHome(t)
	app := filepath.Join(dir, "app")
	newProject(t, app, privateRemote)
	var hashes []string
	for _, days := range []int{90, 60, 31, 20, 1} {
		gitAt(t, app, time.Now().AddDate(0, 0, -days), "commit", "-q", "--allow-empty", "-m", fmt.Sprint(days))
		hashes = append(hashes, gitAt(t, app, time.Time{}, "rev-parse", "HEAD"))
	}
	o, err := openObjects(filepath.Join(app, ".git"))
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	if got := o.past(hashes[4]); got != hashes[2] {
		t.Errorf("%s of %v", got, hashes)
	}
	if got := o.past(strings.Repeat("0", 40)); got != "" {
		t.Errorf("%s", got)
	}
}
