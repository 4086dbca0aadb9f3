package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

// TestWorkspaceJoin checks that a clone has a separate memory and the log names the command
// that joins it, and that a joined clone shares the project's memory in a running proxy and
// after a restart.
func TestWorkspaceJoin(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	settings := map[string]string{"identity.owner": "user:josh"}
	w := start(t, data, settings)
	one, two, three := checkout(t), checkout(t), checkout(t)
	w.see(qwen(one, user(staging)))
	w.delivered(1)
	asked := 0
	knows := func(dir string) bool {
		asked++
		saw, _ := w.see(qwen(dir, user(fmt.Sprintf("Question %d: %s", asked, asks))))
		return strings.Contains(saw[0], "Bluefin")
	}
	join := func(dir string, args ...string) {
		t.Helper()
		out, _, err := commandIn(t, t.TempDir(), dir, append([]string{"workspace", "join", ".", "--set", "data_dir=" + data}, args...)...)
		if err != nil || !strings.Contains(out, dir) || !strings.Contains(out, "acme/widgets") || !strings.Contains(out, filepath.Join(one, ".git")) {
			t.Errorf("%v: got %s, want no error, both directories and the project named", err, out)
		}
	}
	for range 2 {
		if knows(two) || knows(three) || !knows(one) {
			t.Error("another directory has the project")
		}
	}
	for _, dir := range []string{two, three} {
		if n := strings.Count(w.log.String(), "another directory's project, so its memory is separate\" directory="+dir); n != 1 || strings.Count(w.log.String(), "run in it: graphiti-proxy workspace join .\"") != 2 {
			t.Errorf("%d warnings of %s: %s", n, dir, w.log)
		}
	}
	join(two)
	waitUntil(t, "the memory of the project", func() bool { return knows(two) })
	if knows(three) {
		t.Error("another directory has the project")
	}
	w.stop()
	join(three, "--json")
	w = start(t, data, settings)
	if !knows(one) || !knows(two) || !knows(three) {
		t.Error("after a restart they do not share the project")
	}
}

// TestWorkspaceJoinRefuses checks that workspace join refuses wrong arguments, directories
// without a repository, and multi mode.
func TestWorkspaceJoinRefuses(t *testing.T) {
	t.Parallel()
	data, dir := t.TempDir(), checkout(t)
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{}, "needs one directory"},
		{[]string{dir, dir}, "name one directory"},
		{[]string{filepath.Join(data, "nowhere")}, "there is no directory"},
		{[]string{data}, "is in no git repository"},
		{[]string{dir, "--set", "identity.mode=multi"}, "identity.mode is multi"},
		{[]string{dir, "--set", "data_dir=" + filepath.Join(data, "nowhere")}, "start the proxy first"},
	} {
		if _, err := command(t, t.TempDir(), append([]string{"workspace", "join", "--set", "data_dir=" + data}, tc.args...)...); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%v: got %v, want %q in it", tc.args, err, tc.want)
		}
	}
}

// withProjects starts a proxy that stores facts of the person and of two projects. Both
// projects contain the same statement about the person.
func withProjects(t *testing.T, dir string, settings map[string]string) *world {
	t.Helper()
	all := map[string]string{"identity.owner": "user:josh", "identity.group_ids": "raw"}
	for k, v := range settings {
		all[k] = v
	}
	w := start(t, dir, all)
	turns := 0
	for _, s := range []struct{ text, session, workspace string }{
		{"My cat is called Miso.", "one", ""},
		{"The gadgets are blue, and their database is Redis. My favourite editor is vim.", "two", "https://github.com/acme/gadgets"},
		{"Our database is Postgres.", "three", widgets},
		{"My favourite editor is vim. Where do we keep the database?", "three", widgets},
	} {
		headers := []string{"X-Graphiti-Session", s.session}
		if s.workspace != "" {
			headers = append(headers, "X-Graphiti-Workspace", s.workspace)
		}
		w.say(s.text, headers...)
		turns++
		w.delivered(turns)
	}
	waitUntil(t, "what was said outside of projects", func() bool { return len(w.heldIn("user_josh")) == 2 })
	return w
}

// TestCommandsOutsideOfRepositories checks that a directory outside of repositories is a project
// for commands, as it is for clients, except for an export.
func TestCommandsOutsideOfRepositories(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := start(t, t.TempDir(), nil)
	in := m{"role": "system", "content": "You are opencode, a tool.\n<env>\n  Working directory: " + dir + "\n</env>"}
	w.exchange("/v1/chat/completions", chat(in, user("Our database is Postgres.")), "User-Agent", "opencode/1.18.33", "X-Session-Id", "ses_1")
	w.delivered(1)
	for _, tc := range []struct {
		dir   string
		args  []string
		knows bool
	}{
		{dir, []string{"show"}, true},
		{dir, []string{"search", "Which database do we use?"}, true},
		{dir, []string{"export"}, true},
		{t.TempDir(), []string{"show"}, false},
		{t.TempDir(), []string{"export"}, true},
	} {
		out, _, err := commandIn(t, t.TempDir(), tc.dir, append(append([]string{"memory"}, tc.args...), "--set", "admin.listen="+w.app.admin.Addr().String())...)
		if err != nil || strings.Contains(out, "Postgres") != tc.knows {
			t.Errorf("memory %v in %s: %v\n%s", tc.args, tc.dir, err, out)
		}
	}
}

// TestCommandsMeanTheProjectTheyAreCalledIn checks that memory commands without a flag
// cover the project of the working directory and the person's own memory. In projects without
// memory they cover the person's memory, and a flag
// overrides both. They report their choice, on standard error if they print data.
func TestCommandsMeanTheProjectTheyAreCalledIn(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	w := withProjects(t, data, nil)
	repo, ignored := checkout(t), checkout(t, ".graphiti-proxy-ignore")
	below := filepath.Join(repo, "src", "deep")
	must(t, os.MkdirAll(below, 0o700))
	const both, own = "memory of the project acme/widgets, and your own\n", "your own memory\n"
	running := []string{"--set", "admin.listen=" + w.app.admin.Addr().String()}
	stopped := []string{"--set", "data_dir=" + data, "--set", "identity.owner=user:josh", "--set", "identity.group_ids=raw"}
	for _, with := range [][]string{running, stopped} {
		if &with[0] == &stopped[0] {
			w.stop()
		}
		for _, tc := range []struct {
			name, dir string
			flags     []string
			says      string // the reported choice, or "" if a flag made it
			project   bool
			own       bool
		}{
			{"in the project", repo, nil, both, true, true},
			{"below it", below, nil, both, true, true},
			{"in a project that is ignored by a file", ignored, nil, own, false, true},
			{"in one that the settings ignore", repo, []string{"--set", "workspace.ignored=" + repo}, own, false, true},
			{"in one that is not trusted", repo, []string{"--set", "workspace.trusted=github_repo:github.com/acme/gadgets"}, own, false, true},
			{"in one that is trusted", repo, []string{"--set", "workspace.trusted=github_repo:github.com/acme/*"}, both, true, true},
			{"the person by a flag", repo, []string{"--user", "me"}, "", false, true},
			{"the project by a flag", project(t), []string{"--workspace", widgets}, "", true, false},
			{"another project by a flag", repo, []string{"--workspace", "https://github.com/acme/gadgets"}, "", false, false},
			{"a group by a flag", repo, []string{"--group", "user_josh"}, "", false, true},
		} {
			args := slices.Concat(tc.flags, with)
			out, _, err := commandIn(t, t.TempDir(), tc.dir, append([]string{"memory", "show"}, args...)...)
			if err != nil || strings.Contains(out, "Postgres") != tc.project || strings.Contains(out, "Miso") != tc.own || strings.Contains(out, "Redis") != strings.HasPrefix(tc.name, "another") {
				t.Errorf("%s: show: %v\n%s", tc.name, err, out)
			}
			if first, _, _ := strings.Cut(out, "\n"); tc.says != "" && first+"\n" != tc.says || tc.says == "" && strings.Contains(out, "memory") {
				t.Errorf("%s: show says\n%s", tc.name, out)
			}
			if tc.says == both && (strings.Count(out, "user       My favourite") != 1 || !strings.Contains(out, "  project  user       Our database") || !strings.Contains(out, "  you      user       My cat")) {
				t.Errorf("%s: it does not tell whose is what:\n%s", tc.name, out)
			}
			out, errOut, err := commandIn(t, t.TempDir(), tc.dir, append([]string{"memory", "show", "--json"}, args...)...)
			if err != nil || !gjson.Valid(out) || errOut != tc.says {
				t.Errorf("%s: show --json: %v, %q\n%s", tc.name, err, errOut, out)
			}
			out, errOut, err = commandIn(t, t.TempDir(), tc.dir, append([]string{"memory", "export"}, args...)...)
			if want := tc.project || tc.name == "the person by a flag" || tc.says == own; err != nil || strings.Contains(out, "Postgres") != want || strings.Contains(out, "Miso") != tc.own || strings.Contains(out, "acme/gadgets") != (want && !tc.project || strings.HasPrefix(tc.name, "another")) {
				t.Errorf("%s: export: %v\n%s", tc.name, err, out)
			}
			if exported := map[string]string{both: strings.TrimSpace(both) + "; for all of your memory add --user me", own: "all of your memory, projects included"}[tc.says]; !strings.Contains(errOut, exported) || strings.HasPrefix(out, "memory") {
				t.Errorf("%s: export says %q", tc.name, errOut)
			}
			if strings.Contains(tc.name, "by a flag") {
				continue
			}
			out, _, err = commandIn(t, t.TempDir(), tc.dir, append([]string{"memory", "search", "Which database do we use, Postgres? And what is my cat called?"}, args...)...)
			if err != nil || !strings.HasPrefix(out, tc.says) || strings.Contains(out, "Postgres") != tc.project {
				t.Errorf("%s: search: %v\n%s", tc.name, err, out)
			}
		}
	}
}
