package transcripts

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"

	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
)

// unpack extracts an archive of recordings.
func unpack(t *testing.T, archive, dir string) {
	t.Helper()
	f, err := os.Open(archive)
	must(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	must(t, err)
	for in := tar.NewReader(z); ; {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		must(t, err)
		path := filepath.Join(dir, h.Name)
		if h.Typeflag == tar.TypeDir {
			continue
		}
		text, err := io.ReadAll(in)
		if err == nil {
			err = os.MkdirAll(filepath.Dir(path), 0o700)
		}
		if err == nil {
			err = os.WriteFile(path, text, 0o600)
		}
		must(t, err)
	}
}

// recordings returns a directory with the recordings.
func recordings(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	unpack(t, filepath.Join("testdata", "recordings.tar.gz"), dir)
	return dir
}

// expected is a turn in expected.json.
type expected struct {
	Session string
	At      any
	Words   string
	Command string
	Answers []struct{ ID, Text string }
}

// places maps each recording to the path at which its client stores it.
var places = []struct{ recording, client, from, to string }{
	{"claude-2.1.332", "claude-code", "projects", ".claude/projects"},
	{"claude-2.1.332-tui", "claude-code", "projects", ".claude/projects"},
	{"claude-2.0.42", "claude-code", "projects", ".claude/projects"},
	{"claude-1.0.128", "claude-code", "projects", ".claude/projects"},
	{"codex-0.169.0", "codex", "sessions", ".codex/sessions"},
	{"codex-0.58.0", "codex", "sessions", ".codex/sessions"},
	{"opencode-1.18.33", "opencode", "opencode.db", ".local/share/opencode/opencode.db"},
	{"opencode-1.18.33-compact-fork", "opencode", "opencode.db", ".local/share/opencode/opencode.db"},
	{"kilo-7.7.7", "kilo", "kilo.db", ".local/share/kilo/kilo.db"},
	{"gemini-0.61.0", "gemini", "tmp", ".gemini/tmp"},
	{"qwen-0.24.4", "qwen", "projects", ".qwen/projects"},
	{"copilot-1.0.102", "copilot", "session-state", ".copilot/session-state"},
	{"continue-1.5.47", "continue", "sessions", ".continue/sessions"},
	{"kimi-code-2.1.0", "kimi", "sessions", ".kimi-code/sessions"},
	{"cline-3.0.65", "cline", "sessions", ".cline/data/sessions"},
	{"pi-0.73.1", "pi", "sessions", ".pi/agent/sessions"},
	{"aider-0.86.2", "aider", "aider.chat.history.md", "src/.aider.chat.history.md"},
}

// homeWith returns a home with one recording.
func homeWith(t *testing.T, all, recording, from, to string) Home {
	t.Helper()
	home := t.TempDir()
	target := filepath.Join(home, filepath.FromSlash(to))
	must(t, os.MkdirAll(filepath.Dir(target), 0o700))
	must(t, os.Rename(filepath.Join(all, recording, from), target))
	return Home{Dir: home, Work: filepath.Join(home, "src"), Env: func(string) string { return "" }}
}

func TestRead_Recordings(t *testing.T) {
	t.Parallel()
	all := recordings(t)
	text, err := os.ReadFile(filepath.Join(all, "expected.json"))
	must(t, err)
	var want struct{ Clients map[string][]expected }
	must(t, json.Unmarshal(text, &want))
	for _, p := range places {
		t.Run(p.recording, func(t *testing.T) {
			found := homeWith(t, all, p.recording, p.from, p.to).Read(func(int) {})
			if len(found) != 1 || found[0].Client != p.client || found[0].Damaged > 0 || len(found[0].Problems) > 0 {
				t.Fatalf("got %d clients: %+v; want %s alone, without problems", len(found), found, p.client)
			}
			got := found[0].Turns
			if got[0].Program == "" || !slices.Contains(dialect.Names(), got[0].Program) && p.client != "aider" {
				t.Errorf("the program is %q, want the name of a client in requests", got[0].Program)
			}
			slices.SortStableFunc(got, func(a, b Exchange) int { return a.At.Compare(b.At) })
			var wanted []expected
			for _, e := range want.Clients[p.recording] {
				if len(e.Answers) > 0 && !strings.HasPrefix(e.Command, "!") {
					wanted = append(wanted, e)
				}
			}
			for i := range max(len(got), len(wanted)) {
				if i >= len(got) || i >= len(wanted) {
					t.Errorf("turn %d: got %d turns, want %d: %+v", i, len(got), len(wanted), got)
					break
				}
				compare(t, &got[i], &wanted[i])
			}
		})
	}
}

// compare compares a turn with the expected one. The expectations list the answers to all
// requests of a turn; a turn has only the first.
func compare(t *testing.T, got *Exchange, want *expected) {
	t.Helper()
	words := want.Words + want.Command
	at, sure := time.Time{}, true
	switch v := want.At.(type) {
	case string:
		at, _ = time.Parse(time.RFC3339, v)
		sure = !strings.Contains(v, "local")
	case float64:
		at = time.UnixMilli(int64(v))
	default:
		sure = false
	}
	a := want.Answers[0]
	if got.Client == "aider" { // the expectations lack empty lines
		got.Answer = strings.ReplaceAll(got.Answer, "\n\n", "\n")
	}
	if got.Client == "opencode" || got.Client == "kilo" { // its command line puts words into quotation marks
		words = strings.ReplaceAll(strings.Trim(strings.TrimSpace(words), `"`), `\"`, `"`)
	}
	if got.Words != strings.TrimSpace(words) || got.Answer != a.Text || sure && !got.At.Equal(at) || got.Client != "aider" && got.Session != want.Session || a.ID != "" && !slices.Contains(got.Keys, a.ID) {
		t.Errorf("got %+v,\nwant %q at %v in %s, answered %+v", got, words, at, want.Session, a)
	}
	if !strings.HasSuffix(got.Dir, "/home/dev/proj") && got.Client != "gemini" && got.Client != "aider" {
		t.Errorf("got directory %q of %q", got.Dir, words)
	}
}

func TestRead_Trials(t *testing.T) {
	t.Parallel()
	home := Home{Dir: t.TempDir()}
	path := filepath.Join(home.Dir, "x")
	must(t, os.WriteFile(path, []byte("x"), 0o600))
	c := &client{name: "c", read: func(_ *source, t *turns) error {
		for _, dir := range []string{"/tmp/graphiti-proxy-trial-1", "/tmp/graphiti-proxy-trial", "/home/me/src", ""} {
			t.Dir = dir
			t.say("", "hello "+dir, time.Now())
			t.answer("", "hi", time.Now())
		}
		return nil
	}}
	if found := home.read(c, []string{path}, func() {}); len(found.Turns) != 2 {
		t.Errorf("got %+v, want no turn of a trial", found.Turns)
	}
}

func TestRead_Damage(t *testing.T) {
	t.Parallel()
	all := recordings(t)
	for file, want := range map[string]struct{ turns, damaged int }{
		"claude-spliced.jsonl":        {3, 2},
		"claude-half-last-line.jsonl": {2, 0},
		"claude-nul-run.jsonl":        {2, 0},
	} {
		home := t.TempDir()
		dir := filepath.Join(home, ".claude", "projects", "-home-dev-proj")
		must(t, os.MkdirAll(dir, 0o700))
		must(t, os.Rename(filepath.Join(all, "broken", file), filepath.Join(dir, file)))
		found := Home{Dir: home, Env: func(string) string { return "" }}.Read(func(int) {})
		if len(found) != 1 || len(found[0].Turns) != want.turns || found[0].Damaged != want.damaged {
			t.Errorf("%s: got %d turns, %d damaged lines, want %+v", file, len(found[0].Turns), found[0].Damaged, want)
		}
	}
}

func TestTurns_NoWords(t *testing.T) {
	t.Parallel()
	for _, words := range []string{"", "  \n", "\u00a0", "\u2028\t", "<system-reminder>x</system-reminder>"} {
		var list turns
		list.say("", words, time.Now())
		list.answer("", "A cat.", time.Now())
		if got, unfinished, _ := list.finished(); len(got)+unfinished > 0 {
			t.Errorf("%q: got %+v and %d unfinished, want no turn", words, got, unfinished)
		}
	}
}

func TestRead_Panic(t *testing.T) {
	t.Parallel()
	home := Home{Dir: t.TempDir()}
	var paths []string
	for _, name := range []string{"bad", "good"} {
		path := filepath.Join(home.Dir, name)
		must(t, os.WriteFile(path, []byte("x"), 0o600))
		paths = append(paths, path)
	}
	c := &client{name: "c", read: func(s *source, t *turns) error {
		t.say("", "hello", time.Now())
		t.answer("", "hi", time.Now())
		if filepath.Base(s.path) == "bad" {
			panic("secret words")
		}
		return nil
	}}
	found := home.read(c, paths, func() {})
	if found.Files != 2 || len(found.Problems) != 1 || strings.Contains(found.Problems[0], "secret") || len(found.Turns) != 2 {
		t.Errorf("got %+v, want two files, two turns, and one problem without texts", found)
	}
}

func TestMerge(t *testing.T) {
	t.Parallel()
	at := func(minute int) time.Time { return time.Date(2026, 11, 20, 8, minute, 0, 0, time.UTC) }
	long := func(key string) []string { return []string{key + "-0123456789-0123456789"} }
	for _, c := range []struct {
		name  string
		files [][]Exchange
		want  string // sessions of the turns
	}{
		{"a fork copies its origin", [][]Exchange{{{Session: "b", At: at(1), Keys: long("x")}, {Session: "b", At: at(9), Keys: long("z")}}, {{Session: "a", At: at(1), Keys: long("x")}, {Session: "a", At: at(2), Keys: long("y")}}}, "a a b"},
		{"a resume changes times", [][]Exchange{{{Session: "a", At: at(1), ID: "u"}}, {{Session: "b", At: at(5), ID: "u"}}}, "a"},
		{"new ids, old times", [][]Exchange{{{Session: "a", At: at(1), ID: "u", Words: "hi"}}, {{Session: "b", At: at(1), ID: "v", Words: "hi"}, {Session: "b", At: at(2), Words: "ho"}}}, "a b"},
		{"the same words again", [][]Exchange{{{Session: "a", At: at(1), Words: "yes"}, {Session: "a", At: at(2), Words: "yes"}}}, "a a"},
	} {
		var got []string
		for _, turn := range Merge(c.files) {
			got = append(got, turn.Session)
		}
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("%s: got %q, want %q", c.name, s, c.want)
		}
	}
}

func TestTurns_ShortIDs(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"chatcmpl-512", "msg_1", ""} {
		var list turns
		list.say("", "What is it called?", time.Now())
		list.answer(id, "Marlin.", time.Now())
		got, _, _ := list.finished()
		if len(got) != 1 || len(got[0].Keys) > 0 {
			t.Errorf("%q: got %+v, want a turn without keys", id, got)
		}
	}
}

// TestRead_Encodings checks transcripts with a mark, which an editor may add.
func TestRead_Encodings(t *testing.T) {
	t.Parallel()
	all := recordings(t)
	for _, p := range places {
		if strings.HasSuffix(p.from, ".db") {
			continue
		}
		home := homeWith(t, all, p.recording, p.from, p.to)
		turns := func() (n int) {
			for _, f := range home.Read(func(int) {}) {
				n += len(f.Turns)
			}
			return n
		}
		want := turns()
		for _, e := range []encoding.Encoding{unicode.UTF8BOM, unicode.UTF16(unicode.BigEndian, unicode.UseBOM)} {
			err := filepath.WalkDir(home.Dir, func(path string, d fs.DirEntry, err error) error {
				if err != nil || !d.Type().IsRegular() || strings.HasSuffix(path, ".zst") {
					return err
				}
				text, err := os.ReadFile(path)
				if err == nil {
					text, _, err = transform.Bytes(unicode.BOMOverride(transform.Nop), text)
				}
				if err == nil {
					text, err = e.NewEncoder().Bytes(text)
				}
				return errors.Join(err, os.WriteFile(path, text, 0o600))
			})
			if got := turns(); err != nil || got != want {
				t.Errorf("%s: got %d turns in %v, %v; want %d", p.recording, got, e, err, want)
			}
		}
	}
}
