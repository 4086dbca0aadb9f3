package main

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/cmd/internal/cli"
	"github.com/graphiti-proxy/graphiti-proxy/internal/datadir"
	"github.com/graphiti-proxy/graphiti-proxy/internal/helptest"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
)

// removeFiles deletes the contents of a directory and leaves the directory.
func removeFiles(t *testing.T, dir string) {
	t.Helper()
	list, err := os.ReadDir(dir)
	must(t, err)
	for _, e := range list {
		must(t, os.RemoveAll(filepath.Join(dir, e.Name())))
	}
}

// get returns a page of the admin side.
func (w *world) get(path string) string {
	w.t.Helper()
	resp, err := w.client.Get("http://" + w.app.admin.Addr().String() + path)
	must(w.t, err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	must(w.t, err)
	return string(b)
}

// metric returns the value of a metric without labels, or "not there".
func (w *world) metric(name string) string {
	w.t.Helper()
	m := regexp.MustCompile(`(?m)^` + name + ` (\S+)$`).FindStringSubmatch(w.get("/metrics"))
	if m == nil {
		return "not there"
	}
	return m[1]
}

// status returns the output of the status command.
func (w *world) status() string {
	s, out := w.app.status(w.t.Context(), true), &strings.Builder{}
	printStatus(out, &s)
	return out.String()
}

// TestDataDirLockSurvivesRemoval checks that no second proxy starts in the data directory of a
// running proxy, even after the lock file or all files have been deleted.
func TestDataDirLockSurvivesRemoval(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, remove := range []func(){
		func() {},
		func() { _ = os.Remove(filepath.Join(dir, "lock")) },
		func() { removeFiles(t, dir) },
	} {
		w := start(t, dir, nil)
		remove()
		cfg := *w.app.cfg
		other, err := newApp(&cfg, slog.New(slog.DiscardHandler))
		if err == nil {
			_ = other.Shutdown(t.Context())
			t.Error("a second proxy starts in the same data_dir, want an error")
		} else if !strings.Contains(err.Error(), datadir.ErrInUse.Error()) {
			t.Errorf("a second proxy in the same data_dir: %v, want %v", err, datadir.ErrInUse)
		}
		w.stop()
	}
}

// off waits until memory is off because of the state's files, and checks that the model
// sees no block meanwhile.
func (w *world) off() {
	w.t.Helper()
	waitUntil(w.t, "memory to be off", func() bool {
		_, header, saw := w.say("Is my memory there?")
		if strings.Contains(saw, "graphiti_memory") {
			w.t.Errorf("the model saw %q, want no block", saw)
		}
		return strings.HasPrefix(header, "off;") && strings.HasSuffix(header, "reason=state")
	})
}

// TestDeletedFilesAreNoticed checks that the proxy notices a deleted or replaced file, to
// which SQLite would continue to write: memory is off, the status and the log report it,
// and lost turns are counted.
func TestDeletedFilesAreNoticed(t *testing.T) {
	t.Parallel()
	for name, remove := range map[string]func(dir string) error{
		"directory": os.RemoveAll,
		"directory that is there again": func(dir string) error {
			if err := os.RemoveAll(dir); err != nil {
				return err
			}
			return os.Mkdir(dir, 0o700)
		},
		"all files":     func(dir string) error { removeFiles(t, dir); return nil },
		"memory":        func(dir string) error { return os.Remove(filepath.Join(dir, "memory.db")) },
		"log of a file": func(dir string) error { return os.Remove(filepath.Join(dir, "state.db-wal")) },
		"replaced file": func(dir string) error {
			b, err := os.ReadFile(filepath.Join(dir, "memory.db"))
			if err == nil {
				err = os.Remove(filepath.Join(dir, "memory.db"))
			}
			if err == nil {
				err = os.WriteFile(filepath.Join(dir, "memory.db"), b, 0o600)
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "data")
			w := start(t, dir, nil)
			w.say(fact)
			w.delivered(1)
			must(t, remove(dir))
			w.off()
			before := w.app.memory().queue().NotKept
			if answer, _, saw := w.say(question); answer != "I do not know." || saw != question {
				t.Errorf("answer %q, the model saw %q; want the question alone and no memory", answer, saw)
			}
			if n := w.app.memory().queue().NotKept; n != before+1 {
				t.Errorf("%d turns are counted as not kept, want %d", n, before+1)
			}
			status := w.status()
			for _, want := range []string{w.app.cfg.Memory.Backend + ", off", "deleted or replaced", "since", "restart the proxy", fmt.Sprintf("%d turns are lost", before+1)} {
				if !strings.Contains(status, want) {
					t.Errorf("the status lacks %q:\n%s", want, status)
				}
			}
			if ready := w.get("/readyz"); !strings.Contains(ready, `"ready": true`) || !strings.Contains(ready, `"state"`) || !strings.Contains(ready, fmt.Sprintf(`"turns_not_kept": %d`, before+1)) || strings.Contains(ready, dir) {
				t.Errorf("/readyz: %s, want ready, state, %d turns not kept, and not the directory", ready, before+1)
			}
			if v := w.metric("graphiti_proxy_data_dir_failing_seconds"); v == "0" || v == "not there" {
				t.Errorf("graphiti_proxy_data_dir_failing_seconds is %s, want more than 0", v)
			}
			if n := strings.Count(w.log.String(), "memory is off: its storage is unusable"); n != 1 || !strings.Contains(w.log.String(), dir) {
				t.Errorf("the fault is logged %d times, want once with the directory:\n%s", n, w.log)
			}
			w.stop()
		})
	}
}

// TestMovedDirectoryComesBack checks that memory works again once a moved data directory is
// back in its place.
func TestMovedDirectoryComesBack(t *testing.T) {
	t.Parallel()
	if os.PathSeparator != '/' {
		t.Skip("open files cannot be moved here")
	}
	dir := filepath.Join(t.TempDir(), "data")
	w := start(t, dir, nil)
	must(t, os.Rename(dir, dir+"-away"))
	w.off()
	must(t, os.Rename(dir+"-away", dir))
	waitUntil(t, "memory to be there", func() bool { _, header, _ := w.say("Are you there?"); return !strings.HasPrefix(header, "off;") })
	w.say(fact)
	waitUntil(t, "the fact", func() bool { answer, _, _ := w.say(question); return strings.Contains(answer, "Miso") })
	if s := w.status(); !strings.Contains(s, "embedded, working") {
		t.Errorf("the status lacks \"embedded, working\":\n%s", s)
	}
	if !strings.Contains(w.log.String(), "memory is on again") {
		t.Errorf("the log lacks \"memory is on again\":\n%s", w.log)
	}
}

// damages maps the name of each kind of damage to a function that inflicts it on a file.
var damages = map[string]func(path string) error{
	"random bytes": func(path string) error {
		b := make([]byte, 20<<10)
		_, _ = rand.Read(b)
		return os.WriteFile(path, b, 0o600)
	},
	"truncated": func(path string) error { return os.Truncate(path, 5000) },
	"empty beside its log": func(path string) error {
		b, err := os.ReadFile(path)
		if err == nil {
			err = os.WriteFile(path+"-wal", b, 0o600)
		}
		if err == nil {
			err = os.Truncate(path, 0)
		}
		return err
	},
	"gone, its log is there": func(path string) error { return os.Rename(path, path+"-wal") },
	"a directory": func(path string) error {
		if err := os.Remove(path); err != nil {
			return err
		}
		return os.Mkdir(path, 0o700)
	},
	"another version": func(path string) error {
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			return err
		}
		_, err = f.WriteAt([]byte{0, 0, 0, 99}, 60) // user_version
		_ = f.Close()
		return err
	},
	"not to be read": func(path string) error { return os.Chmod(path, 0) },
	"a page of noise": func(path string) error {
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			return err
		}
		noise := make([]byte, 3*4096)
		_, _ = rand.Read(noise)
		_, err = f.WriteAt(noise, 4096)
		_ = f.Close()
		return err
	},
}

// contents returns the contents of a file of the directory and of its write-ahead log,
// unless the log is empty.
func contents(t *testing.T, dir string, file string) map[string]string {
	t.Helper()
	all := make(map[string]string)
	list, err := filepath.Glob(filepath.Join(dir, file+"*"))
	must(t, err)
	for _, path := range list {
		b, err := os.ReadFile(path)
		if err != nil {
			b = []byte(err.Error())
		}
		if !strings.HasSuffix(path, "-shm") && (!strings.HasSuffix(path, "-wal") || len(b) > 0) {
			all[filepath.Base(path)] = string(b)
		}
	}
	return all
}

// flags returns settings as arguments of a command.
func flags(dir string, set map[string]string) (args []string) {
	args = []string{"--set", "data_dir=" + dir}
	for k, v := range set {
		args = append(args, "--set", k+"="+v)
	}
	return args
}

// TestDamagedFile checks that a proxy with a damaged file forwards requests without memory,
// and that its status and log name the file, the remedy and the cost. The proxy does not
// change the file, and the remedy works at that cost.
func TestDamagedFile(t *testing.T) {
	t.Parallel()
	costs := map[string]string{"state.db": "blocks", "memory.db": "remembered"}
	for file, cost := range costs {
		for name, damage := range damages {
			t.Run(file+" "+name, func(t *testing.T) {
				t.Parallel()
				if name == "not to be read" && os.Getuid() == 0 {
					t.Skip("root reads everything")
				}
				dir := t.TempDir()
				w := start(t, dir, nil)
				w.say(fact)
				w.delivered(1)
				w.stop()
				path := filepath.Join(dir, file)
				must(t, damage(path))
				before := contents(t, dir, file)
				w = start(t, dir, nil)
				answer, header, saw := w.say(question)
				if answer != "I do not know." || !strings.HasPrefix(header, "off;") || !strings.HasSuffix(header, "reason=state") || saw != question {
					t.Errorf("answer %q, header %q, the model saw %q; want off with reason=state, and the question alone", answer, header, saw)
				}
				var out bytes.Buffer
				banner(&out, "none", w.app)
				for what, text := range map[string]string{"status": w.status(), "log": w.log.String(), "banner": out.String()} {
					if !strings.Contains(text, path) || what != "banner" && (!strings.Contains(text, "move") || !strings.Contains(text, cost)) {
						t.Errorf("the %s lacks the path %s, the remedy or what it costs (%s):\n%s", what, path, cost, text)
					}
				}
				if ready := w.get("/readyz"); !strings.Contains(ready, `"ready": true`) || !strings.Contains(ready, `"state"`) || !strings.Contains(ready, `"turns_not_kept": 1`) || strings.Contains(ready, dir) {
					t.Errorf("/readyz: %s, want ready, state, 1 turn not kept, and not the directory", ready)
				}
				if v := w.metric("graphiti_proxy_turns_not_kept_total"); v != "1" {
					t.Errorf("graphiti_proxy_turns_not_kept_total is %s, want 1", v)
				}
				w.stop()
				if after := contents(t, dir, file); !equalMaps(before, after) {
					t.Errorf("the damaged file was changed: its sizes were %v and are %v", sizesOf(before), sizesOf(after))
				}
				for _, args := range [][]string{{"memory", "show"}, {"queue", "list"}, {"memory", "export", "--user", "josh"}} {
					if args[0] == "queue" && file == "state.db" {
						continue
					}
					_, err := command(t, dir, append(args, flags(dir, nil)...)...)
					if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "move") || strings.Contains(err.Error(), "\n") {
						t.Errorf("%v: error %v, want one line with %s and the remedy", args, err, path)
					}
				}

				// The remedy is to move the file away. It costs the contents of that file
				// only.
				if err := os.Chmod(path, 0o700); err != nil && !os.IsNotExist(err) {
					t.Fatal(err)
				}
				away := t.TempDir()
				for _, end := range []string{"", "-wal", "-shm"} {
					if err := os.Rename(path+end, filepath.Join(away, file+end)); err != nil && !os.IsNotExist(err) {
						t.Fatal(err)
					}
				}
				w = start(t, dir, nil)
				if answer, header, _ = w.say(question); strings.Contains(answer, "Miso") != (file != "memory.db") {
					t.Errorf("after the remedy for %s: answer %q, header %q; want the fact: %v", file, answer, header, file != "memory.db")
				}
				if q := w.app.memory().queue(); file == "state.db" && q.Delivered == 0 {
					t.Errorf("the queue has forgotten: %+v", q)
				}
			})
		}
	}
}

func equalMaps(a, b map[string]string) bool {
	if len(a) != len(b) {
		return false
	}
	for k, v := range a {
		if w, ok := b[k]; !ok || v != w {
			return false
		}
	}
	return true
}

func sizesOf(files map[string]string) (list []string) {
	for name, text := range files {
		list = append(list, fmt.Sprint(name, " ", len(text)))
	}
	slices.Sort(list)
	return list
}

// TestFileThatBreaksWhileItIsUsed checks that memory is off after a file has been damaged
// under a running proxy, and that the status names the file and the remedy.
func TestFileThatBreaksWhileItIsUsed(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"state.db", "memory.db"} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			w := start(t, dir, nil)
			w.say(fact)
			w.delivered(1)
			w.stop() // moves the write-ahead log into the file
			w = start(t, dir, nil)
			noise := make([]byte, 4096)
			_, _ = rand.Read(noise)
			f, err := os.OpenFile(filepath.Join(dir, file), os.O_RDWR, 0)
			must(t, err)
			info, err := f.Stat()
			must(t, err)
			for at := int64(4096); at < info.Size(); at += 4096 {
				must(t, helptest.ErrorOf(f.WriteAt(noise, at)))
			}
			f.Close()
			n := 0
			waitUntil(t, "the damage to be noticed", func() bool {
				n++
				_, header, _ := w.say(fmt.Sprintf("My cat number %d is called Miso, what is it called?", n))
				return strings.HasPrefix(header, "off;") && strings.HasSuffix(header, "reason=state")
			})
			if s := w.status(); !strings.Contains(s, file) || !strings.Contains(s, "damaged") || !strings.Contains(s, "move") {
				t.Errorf("the status lacks %s, damaged or the remedy:\n%s", file, s)
			}
		})
	}
}

// TestCommandsTalkToTheOwner checks that a command acts only on the data directory that it
// names, even if the proxy at its address uses another one.
func TestCommandsTalkToTheOwner(t *testing.T) {
	t.Parallel()
	a, b := start(t, t.TempDir(), map[string]string{"identity.owner": "user:josh"}), t.TempDir()
	a.say(fact)
	a.delivered(1)
	listen := "admin.listen=" + a.app.admin.Addr().String()
	own := []string{"--set", "identity.owner=user:josh", "--set", listen}
	there := func() bool {
		answer, _, _ := a.say("So what is my cat called? And " + rand.Text() + "?")
		return strings.Contains(answer, "Miso")
	}
	for _, args := range [][]string{
		{"memory", "forget", "--yes", "--user", "josh"},
		{"memory", "show"},
		{"memory", "export", "--user", "josh"},
		{"memory", "search", "cat"},
		{"queue", "status", "--json"},
		{"queue", "drop", "--all"},
		{"status"},
		{"memory", "promote", "--kind", "decision", "Postgres"},
	} {
		out, err := command(t, b, slices.Concat(args, own, []string{"--set", "data_dir=" + b})...)
		if strings.Contains(out, "Miso") || strings.Contains(out, `"delivered": 1`) || args[0] == "status" && err == nil {
			t.Errorf("%v: %s, %v; want nothing of the other proxy's memory", args, out, err)
		}
		if err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("%v: error %q, want one line", args, err)
		}
	}
	if !there() {
		t.Fatal("the proxy at the address has lost its memory to a command for another data_dir")
	}
	if out := a.get("/api/v1/memory/export?group=" + group(t, a)); strings.Contains(out, "Postgres") {
		t.Errorf("the proxy at the address holds what was promoted for another data_dir: %s", out)
	}

	// The proxy that runs in the data directory answers, not the one at the address.
	second := start(t, b, map[string]string{"identity.owner": "user:josh"})
	second.say("My dog is called Rex.")
	waitUntil(t, "the dog", func() bool {
		answer, _, _ := second.say("What is my dog called?")
		return strings.Contains(answer, "Rex")
	})
	for _, args := range [][]string{{"memory", "export", "--user", "josh"}, {"queue", "status", "--json"}, {"status"}} {
		out, err := command(t, b, slices.Concat(args, own, []string{"--set", "data_dir=" + b})...)
		if err != nil || strings.Contains(out, "Miso") || args[0] == "memory" && !strings.Contains(out, "Rex") {
			t.Errorf("%v: %s, %v; want the memory of the proxy in data_dir (Rex)", args, out, err)
		}
	}

	// Without a data directory, the proxy at the address answers.
	if out, err := command(t, b, slices.Concat([]string{"memory", "export", "--user", "josh"}, own)...); err != nil || !strings.Contains(out, "Miso") {
		t.Errorf("export by the address alone: %s, %v; want the memory of the proxy there (Miso)", out, err)
	}
	// A copy of a data directory is a data directory of its own.
	c := t.TempDir()
	if out, err := exec.Command("cp", "-r", a.app.cfg.DataDir+"/.", c).CombinedOutput(); err != nil { // #nosec G204 -- of this test
		t.Fatalf("%v: %s", err, out)
	}
	if _, err := command(t, c, slices.Concat([]string{"memory", "forget", "--yes", "--user", "josh"}, own, []string{"--set", "data_dir=" + c})...); err != nil {
		t.Errorf("memory forget in a copy of data_dir: %v", err)
	}
	if !there() {
		t.Error("memory forget in a copy of data_dir emptied the original")
	}
}

// group returns the first group of josh.
func group(t *testing.T, w *world) string {
	t.Helper()
	found, err := cli.Ask(t.Context(), adminOf(w), service.Groups, service.Selector{User: "josh"})
	if err != nil || len(found.Groups) == 0 {
		t.Fatalf("groups of josh: %+v, %v; want one at least", found, err)
	}
	return found.Groups[0].Group
}

// TestDataDirOfAnotherUser checks that a proxy that cannot use its data directory forwards
// requests without memory and reports the reason.
func TestDataDirOfAnotherUser(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "lock"), 0o700); err != nil { // no user can lock a directory
		t.Fatal(err)
	}
	w := start(t, dir, nil)
	if _, header, saw := w.say(question); !strings.HasSuffix(header, "reason=state") || saw != question {
		t.Errorf("header %q, the model saw %q; want reason=state, and the question alone", header, saw)
	}
	if s := w.status(); !strings.Contains(s, "embedded, off") || !strings.Contains(s, dir) || !strings.Contains(s, "readable and writable") {
		t.Errorf("the status lacks \"embedded, off\", %s or the remedy:\n%s", dir, s)
	}
}
