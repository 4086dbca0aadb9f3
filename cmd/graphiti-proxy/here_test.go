package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/graphiti-proxy/graphiti-proxy/cmd/internal/cli"
)

// withProjects starts a proxy that knows something of the person and of two projects; what
// the person said of themselves in both is in their own memory too.
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
	waitUntil(t, "what was said of themselves", func() bool { return len(w.heldIn("user_josh")) == 3 })
	return w
}

// TestCommandsMeanTheProjectTheyAreCalledIn: without a flag it is the project that
// they are called in, and the person's own; elsewhere, and where there is no memory,
// it is the person's; what a flag names is meant as before. They say which, and
// beside data on standard error.
func TestCommandsMeanTheProjectTheyAreCalledIn(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	w := withProjects(t, data, nil)
	repo, ignored := checkout(t), checkout(t, ".graphiti-proxy-ignore")
	below := filepath.Join(repo, "src", "deep")
	if err := os.MkdirAll(below, 0o700); err != nil {
		t.Fatal(err)
	}
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
			says      string // empty: nothing, since a flag does
			project   bool
			own       bool
		}{
			{"in the project", repo, nil, both, true, true},
			{"below it", below, nil, both, true, true},
			{"outside of projects", project(t), nil, own, false, true},
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
			if exported := map[string]string{both: strings.TrimSpace(both) + "; for all that is yours add --user me", own: "all memory of yours, projects included"}[tc.says]; !strings.Contains(errOut, exported) || strings.HasPrefix(out, "memory") {
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

// TestMemoryListNamesProjectsAndConversations, and how many more there are. It is the
// same with a proxy that runs and without one.
func TestMemoryListNamesProjectsAndConversations(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	w := withProjects(t, data, nil)
	list := func(args ...string) string {
		t.Helper()
		out, err := w.cli(append([]string{"memory", "list"}, args...)...)
		if err != nil {
			t.Fatalf("%v: %v", args, err)
		}
		return out
	}
	out := list("--json")
	if got := gjson.Get(out, "memories.#.messages").String() + gjson.Get(out, "conversations.#.messages").String(); got != "[4,3,2][4,2,2]" {
		t.Errorf("%s in %s", got, out)
	}
	text := strings.Join(strings.Fields(list()), " ")
	for _, want := range []string{"MEMORY KIND MESSAGES FIRST LAST acme/widgets project 4 20", " you own 3 20", "CONVERSATION IN MESSAGES FIRST LAST Our database is Postgres. acme/widgets 4 20"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if text := list("--limit", "2"); strings.Count(text, "… and 1 more; list them with --limit") != 2 {
		t.Errorf("%s", text)
	}
	w.stop()
	alone, err := command(t, t.TempDir(), "memory", "list", "--json", "--set", "data_dir="+data, "--set", "identity.owner=user:josh", "--set", "identity.group_ids=raw")
	if err != nil || alone != out {
		t.Errorf("without a proxy: %v\n%s\nwith one:\n%s", err, alone, out)
	}
}

// TestMemoryListRefusesWhatCannotBeMeant, in one line.
func TestMemoryListRefusesWhatCannotBeMeant(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, tc := range []struct {
		args []string
		says string
	}{
		{[]string{"--limit", "0"}, "--limit must be 1 to 1000"},
		{[]string{"--limit", "1001"}, "--limit must be 1 to 1000"},
		{[]string{"--limit", "many"}, "is not a number"},
		{[]string{"--user", ""}, "is empty"},
		{[]string{"--workspace", "."}, "unknown flag"},
		{[]string{"all"}, `takes no argument "all"`},
		{[]string{"--set", "identity.mode=multi"}, "say whose memories are meant"},
	} {
		_, err := command(t, dir, append([]string{"memory", "list"}, tc.args...)...)
		if err == nil || !strings.Contains(err.Error(), tc.says) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v: %v, want %q", tc.args, err, tc.says)
		}
	}
	if _, err := command(t, dir, "memory", "list", "--limit", "0"); !errors.As(err, new(cli.UsageError)) {
		t.Errorf("%v", err)
	}
	if out, errOut, err := commandIn(t, dir, dir, "memory", "list"); err != nil || out != "" || !strings.Contains(errOut, "no memory yet for you") {
		t.Errorf("an empty one: %q, %q, %v", out, errOut, err)
	}
}

// TestMemoryListOfACredential: where each credential is a tenant, one lists what is
// its own, and a directory does not stand for anybody.
func TestMemoryListOfACredential(t *testing.T) {
	t.Parallel()
	w := start(t, t.TempDir(), map[string]string{"identity.mode": "multi"})
	turns := 0
	for key, text := range map[string]string{"sk-one": "We use Postgres.", "sk-other": "We use Redis."} {
		w.say(text, "Authorization", "Bearer "+key, "X-Graphiti-Session", "s", "X-Graphiti-Workspace", widgets)
		turns++
		w.delivered(turns)
	}
	out, err := w.cli("memory", "list", "--json", "--credential", "sha256:"+sha("sk-one"))
	if err != nil || gjson.Get(out, "memories.#").Int() != 1 || gjson.Get(out, "memories.0.name").String() != "acme/widgets" ||
		gjson.Get(out, "conversations.#.begins").String() != `["We use Postgres."]` || strings.Contains(out, "Redis") {
		t.Errorf("%v %s", err, out)
	}
	at := "--set=admin.listen=" + w.app.admin.Addr().String()
	for _, args := range [][]string{{"show"}, {"search", "Postgres"}, {"export"}, {"list"}} {
		if out, _, err := commandIn(t, t.TempDir(), checkout(t), append([]string{"memory", at}, args...)...); err == nil || !strings.Contains(err.Error(), "say whose memor") || out != "" {
			t.Errorf("%v of nobody: %v %s", args, err, out)
		}
	}
}
