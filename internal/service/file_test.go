package service_test

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/text/encoding/unicode"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
	"github.com/graphiti-proxy/graphiti-proxy/internal/servicetest"
	"github.com/graphiti-proxy/graphiti-proxy/internal/transcripts"
)

// importText imports a file with a text as the command does, and counts the calls.
func importText(t *testing.T, m *servicetest.Fixture, text string) (done service.Imported, calls int, err error) {
	t.Helper()
	im := service.FileImport{
		Lines: transcripts.Lines(strings.NewReader(text)), Tell: func(int) {},
		Call: func(ctx context.Context, in service.ImportRequest) (service.Imported, error) {
			calls++
			return service.Import.Run(ctx, m.Host, &in)
		},
	}
	done, err = im.Run(t.Context(), service.Selector{})
	return done, calls, err
}

const (
	chatGPT = `[{"conversation_id":"c1","current_node":"3","mapping":{
		"0":{"parent":null,"message":null},
		"1":{"parent":"0","message":{"author":{"role":"user"},"create_time":1767605000.5,"content":{"parts":["Which llama eats hay?"]}}},
		"2":{"parent":"1","message":{"author":{"role":"assistant"},"create_time":null,"content":{"parts":["A first try."]}}},
		"3":{"parent":"1","message":{"author":{"role":"assistant"},"create_time":1767605001,"content":{"parts":["Every llama eats hay.",{"asset":1}]}}}}}]`
	claude = `[{"uuid":"u1","chat_messages":[
		{"uuid":"m1","sender":"human","text":"","created_at":"2026-01-07T10:00:00.123Z","content":[{"type":"text","text":"My vicuña is called Pia."}]},
		{"uuid":"m2","sender":"assistant","text":"Lovely.","created_at":"2026-01-07T10:00:01Z","content":[]}]}]`
	notes = `{"scope":"user","role":"user","name":"Ann","content":"I breed alpacas.","timestamp":"2026-01-05T10:00:00Z","session":"a"}

{"role":"assistant","name":"Bob","content":"How many?","timestamp":"2026-01-05T10:01:00Z","session":"a"}
{"role":"assistant","name":"Bob","content":"How many?","timestamp":"2026-01-05T10:01:00Z","session":"a"}
`
)

// TestFilesAreImportedOnce: lines, and the exports of accounts, are kept in their
// order, each once, equal lines too.
func TestFilesAreImportedOnce(t *testing.T) {
	m := servicetest.Open(t, t.TempDir(), servicetest.Options{})
	for name, tc := range map[string]struct {
		text string
		kept int
	}{
		"lines":                                {notes, 3},
		"ChatGPT":                              {chatGPT, 2},
		"Claude":                               {claude, 2},
		"one conversation":                     {`{"uuid":"w","chat_messages":[{"uuid":"m","sender":"human","text":"I breed ducks."}]}`, 1},
		"lists one after the other":            {`[{"uuid":"x","chat_messages":[{"uuid":"m","sender":"human","text":"I breed hens."}]}][]` + "\n" + `[{"uuid":"y","chat_messages":[{"uuid":"m","sender":"human","text":"I breed geese."}]}]`, 2},
		"what an editor puts before an export": {"\ufeff\n\n [{\"uuid\":\"u\",\"chat_messages\":[{\"uuid\":\"m\",\"sender\":\"human\",\"text\":\"I breed goats.\"}]},{\"uuid\":\"v\",\"chat_messages\":[]}]", 1},
	} {
		utf16, err := unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewEncoder().String(strings.TrimPrefix(tc.text, "\ufeff")) // as PowerShell writes it
		must(t, err)
		for i, want := range []service.Imported{{Kept: tc.kept}, {Known: tc.kept}, {Known: tc.kept}} {
			if done, _, err := importText(t, m, []string{tc.text, "\ufeff" + strings.TrimPrefix(tc.text, "\ufeff"), utf16}[i]); err != nil || done.Kept != want.Kept || done.Known != want.Known {
				t.Errorf("%s: %+v, want %+v, %v", name, done, want, err)
			}
		}
	}
	var texts []string
	for _, r := range run(t, m, service.Show, service.ShowRequest{Last: 50}).Messages {
		texts = append(texts, r.Time[:len("2026-01-05T10:00")]+" "+r.Text)
	}
	all := strings.Join(texts, "\n")
	if strings.Count(all, "How many?") != 2 || strings.Contains(all, "A first try") || !strings.Contains(all, "2026-01-05T10:00 I breed alpacas.\n2026-01-05T10:01 How many?") {
		t.Error(all)
	}
}

// TestCurrentBranch imports only the messages that the person kept.
func TestCurrentBranch(t *testing.T) {
	talk := func(more, last, of string) string {
		return `[{"conversation_id":"c"` + more + `,"mapping":{"r":{},
			"1":{"parent":"r","message":{"author":{"role":"user"},"create_time":1,"content":{"parts":["Old."]}}},
			"2":{"parent":"r","message":{"author":{"role":"user"},"create_time":2,"content":{"parts":[` + of + `]}}},
			"3":{"parent":"2","message":{"author":{"role":"assistant"},"create_time":3` + last + `,"content":{"parts":["New answer."]}}}}}]`
	}
	branches := `"chat_messages":[
		{"uuid":"1","parent_message_uuid":"0","sender":"human","text":"Old."},{"uuid":"2","parent_message_uuid":"1","sender":"assistant","text":"Old answer."},
		{"uuid":"3","parent_message_uuid":"0","sender":"human","text":"New."},{"uuid":"4","parent_message_uuid":"3","sender":"assistant","text":"New answer."}]}]`
	for name, tc := range map[string]struct {
		text, want string
		left       int
	}{
		"ChatGPT":                  {talk(`,"current_node":"3"`, "", `"New."`), "New. New answer.", 1},
		"ChatGPT, another branch":  {talk(`,"current_node":"1"`, "", `"New."`), "Old.", 2},
		"ChatGPT, the newest leaf": {talk("", "", `"New."`), "New. New answer.", 1},
		"ChatGPT, spoken":          {talk("", "", `{"content_type":"audio_transcription","text":"Said.","direction":"in"}`), "Said. New answer.", 1},
		"ChatGPT, hidden":          {talk("", `,"metadata":{"is_visually_hidden_from_conversation":true}`, `"New."`), "New.", 1},
		"ChatGPT, not to remember": {talk(`,"is_do_not_remember":true`, "", `"New."`), "", 3},
		"Claude":                   {`[{"uuid":"c","current_leaf_message_uuid":"2",` + branches, "Old. Old answer.", 2},
		"Claude, the newest leaf":  {`[{"uuid":"c",` + branches, "New. New answer.", 2},
		"ChatGPT, an unknown form": {`[{"conversation_id":"c","mapping":{"1":{"message":{"author":{"role":"user"},"content":{"pieces":[{"words":"New."}]}}}}}]`, "", 1},
		"DeepSeek":                 {`[{"id":"c","mapping":{"1":{"message":{"fragments":[{"type":"REQUEST","content":"New."}]}},"2":{"parent":"1","message":{"fragments":[{"type":"RESPONSE","content":"New answer."}]}}}}]`, "", 2},
		"ChatGPT, a circle":        {`[{"conversation_id":"c","current_node":"1","mapping":{"1":{"parent":"1"}}}]`, "", 0},
	} {
		var got []string
		left, err := transcripts.Lines(strings.NewReader(tc.text))(func(_ int, l service.Line) error {
			got = append(got, l.Content)
			return nil
		})
		if all := strings.Join(got, " "); err != nil || all != tc.want || left != tc.left {
			t.Errorf("%s: got %q and %d left out, %v; want %q and %d", name, all, left, err, tc.want, tc.left)
		}
	}
}

// TestInvalidImportLines checks that an error names the line that cannot be imported.
func TestInvalidImportLines(t *testing.T) {
	m := servicetest.Open(t, t.TempDir(), servicetest.Options{})
	for text, says := range map[string]string{
		`{"role":"user","content":"x","colour":"red"}`:                                       "colour",
		"\n\n{\"role\":\"user\",\"content\":\"x\"}\n\n{\"role\":\"tool\",\"content\":\"x\"}": "line 5: role",
		"\ufeff\n nonsense":                     "line 2 ",
		`[{"role":"user","content":"x"}]`:       "item 1",
		`{"role":"user","content":"x"} {"a":1}`: "line 1 ",
		`nonsense`:                              "line 1",
		`[{"mapping":7}]`:                       "conversation 1",
		`{"role":"user","content":"` + strings.Repeat("x", 5<<20) + `"}`: "line 1 is larger",
	} {
		if _, _, err := importText(t, m, text); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%.80s: %v, want %q", text, err, says)
		}
	}
}

// TestCallsOfAnImport are bounded by their bytes, and hold both sides of a turn,
// wherever one ends.
func TestCallsOfAnImport(t *testing.T) {
	var long, turns strings.Builder
	for i := range 180 { // more than a call may have
		fmt.Fprintf(&long, "{\"role\":\"user\",\"content\":\"%d %s\"}\n", i, strings.Repeat("x", 96<<10))
	}
	lines := 0
	for i := range 2300 {
		turn := fmt.Sprintf("%032x", i)
		for _, role := range []graphiti.RoleType{graphiti.RoleUser, graphiti.RoleAssistant} {
			if i == 0 && role == graphiti.RoleAssistant { // it was not answered: calls would end within turns
				continue
			}
			lines++
			line, _ := json.Marshal(service.Record{Scope: "user", Name: graphiti.EpisodeName(turn, role), Where: "memory", Role: string(role), Text: fmt.Sprint(role, turn)})
			turns.Write(append(line, '\n'))
		}
	}
	for _, tc := range []struct {
		name, text   string
		lines, calls int
	}{{"long lines", long.String(), 180, 5}, {"turns", turns.String(), lines, 2}} {
		m := servicetest.Open(t, t.TempDir(), servicetest.Options{})
		if done, calls, err := importText(t, m, tc.text); err != nil || done.Kept != tc.lines || done.Known != 0 || calls != tc.calls {
			t.Errorf("%s: %+v in %d calls, %v", tc.name, done, calls, err)
		}
		m.Close()
	}
}

// TestExportGoesToNoOtherProject: an export names the memory of each line, so an import into
// a project refuses it and stores nothing.
func TestExportGoesToNoOtherProject(t *testing.T) {
	for name, text := range map[string]string{
		"an export":     `{"scope":"user","name":"n","where":"memory","role":"user","text":"I breed alpacas."}`,
		"a named group": `{"group":"graphiti_user_x","role":"user","content":"I breed alpacas."}`,
	} {
		im := service.FileImport{Lines: transcripts.Lines(strings.NewReader(text)), Tell: func(int) {}, Call: func(context.Context, service.ImportRequest) (service.Imported, error) {
			t.Errorf("%s: was sent", name)
			return service.Imported{}, nil
		}}
		if _, err := im.Run(t.Context(), service.Selector{Workspace: "path:/x"}); err == nil || !strings.Contains(err.Error(), "--workspace") {
			t.Errorf("%s: got %v, want an error that names --workspace", name, err)
		}
	}
}

// TestOpenImport opens files, archives, folders, and pipes of a shell's <(…).
func TestOpenImport(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		p := filepath.Join(dir, name)
		must(t, os.WriteFile(p, []byte(text), 0o600))
		return p
	}
	zipped := func(files ...string) string { // names and texts
		var b bytes.Buffer
		z := zip.NewWriter(&b)
		for ; len(files) > 0; files = files[2:] {
			f, err := z.Create(files[0])
			if err == nil {
				_, err = io.WriteString(f, files[1])
			}
			must(t, err)
		}
		must(t, z.Close())
		return b.String()
	}
	none := zipped("notes.txt", chatGPT, "my-conversations.json", chatGPT)
	opens := map[string]string{
		file("notes.jsonl", notes):                                  notes,
		file("a.zip", zipped("export/conversations.json", chatGPT)): chatGPT,
		file("numbered.zip", zipped("conversations-001.json", claude, "user.json", "{}", "conversations-000.json", chatGPT)): chatGPT + claude,
		file("nested.zip", zipped("part.zip", zipped("conversations.json", claude))):                                         claude,
	}
	folder := filepath.Join(dir, "folder")
	must(t, errors.Join(os.Mkdir(folder, 0o700), os.WriteFile(filepath.Join(folder, "conversations.json"), []byte(claude), 0o600)))
	opens[folder] = claude
	if r, w, err := os.Pipe(); err == nil {
		defer r.Close()
		if name := fmt.Sprintf("/dev/fd/%d", r.Fd()); exists(name) {
			opens[name] = notes
		}
		if _, err := io.WriteString(w, notes); err != nil || w.Close() != nil {
			t.Fatal(err)
		}
	}
	for name, want := range opens {
		f, err := transcripts.Open(name)
		must(t, err)
		got, err := io.ReadAll(f)
		if omitted := strings.Join(f.Omitted, " "); omitted != map[string]string{"numbered.zip": "user.json"}[filepath.Base(name)] {
			t.Errorf("%s: omitted %q", name, omitted)
		}
		if f.Close(); err != nil || string(got) != want || f.Size != int64(len(want)) && !strings.HasPrefix(name, "/dev") {
			t.Errorf("%s: %d bytes, %v\n%s", name, f.Size, err, got)
		}
	}
	for name, says := range map[string]string{filepath.Join(dir, "none"): "no such file", file("b.zip", none): "contains no conversations.json", file("c.zip", zipped("a.zip", zipped("b.zip", zipped("conversations.json", claude)))): "contains no conversations.json", file("d.zip", zipped("a.zip", "broken")): "unpack the export"} {
		if _, err := transcripts.Open(name); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", name, err, says)
		}
	}
}

func exists(name string) bool { _, err := os.Stat(name); return err == nil }

// TestExportIsImported: another owner's memory imports an export completely. Its own export is
// the same, byte for byte, and it recalls the messages.
func TestExportIsImported(t *testing.T) {
	t.Parallel()
	m := servicetest.Open(t, t.TempDir(), servicetest.Options{})
	opens(t, m, "", "s1", "My cat is called Miso.")
	opens(t, m, widgets, "s2", "We use Postgres (not MySQL): it has jsonb.")
	run(t, m, service.Promote, service.PromoteRequest{Promotion: service.Promotion{Kind: "preference", Text: "tabs, not spaces"}})
	run(t, m, service.Promote, service.PromoteRequest{Selector: service.Selector{Workspace: widgets}, Promotion: service.Promotion{Kind: "decision", Text: "Redis"}})
	m.Settle(t)
	lines := func(m *servicetest.Fixture) string {
		var b strings.Builder
		for _, r := range records(t, m, service.Selector{}) {
			must(t, json.NewEncoder(&b).Encode(r))
		}
		return b.String()
	}
	first := lines(m)
	if strings.Count(first, "\n") < 7 {
		t.Fatalf("export = %s, want at least seven lines", first)
	}
	ann := servicetest.Open(t, t.TempDir(), servicetest.Options{Owner: "user:ann"})
	for again := range 2 {
		done, _, err := importText(t, ann, first)
		if err != nil || (done.Kept == 0) != (again == 1) || (done.Known == 0) != (again == 0) {
			t.Errorf("import %d = %+v, %v; want each line new once", again+1, done, err)
		}
		if second := lines(ann); second != first {
			t.Errorf("export after import %d = %s, want %s", again+1, second, first)
		}
	}
	if got := strings.Join(exported(t, ann, service.Selector{Session: "s1"}), "\n"); strings.Count(got, "Miso") != 2 || strings.Contains(got, "Postgres") {
		t.Errorf("export of s1 = %s, want the cat twice, and nothing of the project", got)
	}
	who := ownerIn("", "asks")
	who.User = "user:ann"
	if block, _ := ann.Talk(t, who, "What is my cat called?"); !strings.Contains(block, "Miso") {
		t.Errorf("block = %q, want the cat", block)
	}
	forgetSession(t, ann, "s1")
	if got := exported(t, ann, service.Selector{Session: "s1"}); len(got) > 0 {
		t.Errorf("export of s1 after it was forgotten = %q, want nothing", got)
	}
}
