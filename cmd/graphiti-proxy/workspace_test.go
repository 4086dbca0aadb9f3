package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
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
