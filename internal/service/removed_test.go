package service_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/graphiti-proxy/graphiti-proxy/internal/helptest"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
	"github.com/graphiti-proxy/graphiti-proxy/internal/servicetest"
	"github.com/graphiti-proxy/graphiti-proxy/internal/transcripts"
)

// newest returns the latest change of the owner's history.
func newest(t *testing.T, m *servicetest.Fixture) service.Change {
	t.Helper()
	list := run(t, m, service.History, service.HistoryRequest{Limit: 1}).Changes
	if len(list) == 0 {
		t.Fatal("the history is empty")
	}
	return list[0]
}

// groupOf returns the group of a selector.
func groupOf(t *testing.T, m *servicetest.Fixture, s service.Selector) string {
	t.Helper()
	return run(t, m, service.Groups, s).Groups[0].Group
}

// idOf returns the ID of the latest message of a project with a text.
func idOf(t *testing.T, m *servicetest.Fixture, project, text string) (id string) {
	t.Helper()
	for _, r := range run(t, m, service.Show, service.ShowRequest{Selector: service.Selector{Workspace: project}, Last: 50}).Messages {
		if strings.Contains(r.Text, text) {
			id = r.ID
		}
	}
	return id
}

// linesOf returns the lines of an export in one order, without session notes, which forgetting a
// message empties.
func linesOf(export []byte) []string {
	lines := slices.Sorted(strings.SplitSeq(string(export), "\n"))
	return slices.DeleteFunc(lines, func(l string) bool { return strings.Contains(l, `"where":"session"`) })
}

// TestForget_Undoable checks that a forget with a copy hides a memory in each state from all readers,
// and that its undo restores all of it, twice.
func TestForget_Undoable(t *testing.T) {
	m := servicetest.Open(t, t.TempDir(), servicetest.Options{})
	everyState(t, m)
	before, groups := exportAll(t, m), run(t, m, service.Groups, service.Selector{}).Groups
	for range 2 {
		for _, g := range groups {
			acted(t, m, service.Forget, service.ForgetRequest{Selector: service.Selector{Group: g.Group}, Undoable: true})
		}
		if got := string(exportAll(t, m)); got != "" {
			t.Errorf("left: %s", got)
		}
		for _, c := range run(t, m, service.History, service.HistoryRequest{Limit: 10}).Changes {
			if c.What != "remove" || c.Until == "" || c.Records == 0 || len(c.Parts[0].Old) == 0 || c.By == "" {
				t.Errorf("history: %+v", c)
			}
			run(t, m, service.Undo, service.UndoRequest{ID: c.ID})
			if _, _, err := call(t, m, "memory/undo", `{"id":"`+c.ID+`"}`); err == nil {
				t.Error("undone twice")
			}
		}
		m.Settle(t)
		if diff := cmp.Diff(linesOf(before), linesOf(exportAll(t, m))); diff != "" {
			t.Errorf("after the undo (-before, +after):\n%s", diff)
		}
		for _, c := range run(t, m, service.History, service.HistoryRequest{Limit: 10}).Changes {
			if c.Undone == "" || strings.Contains(fmt.Sprint(c.Parts), "booking") {
				t.Errorf("history after the undo: %+v", c)
			}
			run(t, m, service.Forget, service.ForgetRequest{Selector: service.Selector{Group: c.Parts[0].Group}, Undoable: true})
			run(t, m, service.Undo, service.UndoRequest{ID: newest(t, m).ID})
		}
	}
}

// TestForgetMessage_Undoable checks the undo of a forgotten message with its copies, its line of the
// card, and the fact from it.
func TestForgetMessage_Undoable(t *testing.T) {
	for _, text := range []string{"booking number", "Always answer in German", "Oolong"} {
		t.Run(text, func(t *testing.T) {
			m := servicetest.Open(t, t.TempDir(), servicetest.Options{})
			everyState(t, m)
			before := exportAll(t, m)
			id := idOf(t, m, widgets, text)
			acted(t, m, service.ChangeMany, service.ManyRequest{Do: "remove", Messages: []string{id}})
			m.Settle(t)
			if got := string(exportAll(t, m)); strings.Contains(got, text) {
				t.Errorf("after the forget: %s", got)
			}
			c := newest(t, m)
			if !strings.Contains(fmt.Sprint(c.Parts[0].Old), text) {
				t.Errorf("history: %+v", c)
			}
			run(t, m, service.Undo, service.UndoRequest{ID: c.ID})
			m.Settle(t)
			if diff := cmp.Diff(linesOf(before), linesOf(exportAll(t, m))); diff != "" {
				t.Errorf("after the undo (-before, +after):\n%s", diff)
			}
		})
	}
}

// TestForget_UndoneMessage checks that a message that an undo has restored, after its answer, survives the
// forget of its memory and the undo of that.
func TestForget_UndoneMessage(t *testing.T) {
	m := servicetest.Open(t, t.TempDir(), servicetest.Options{})
	add(t, m, func() { m.Settle(t) }, turn(strings.Repeat("1a", 16), "s1", "My canoe is called Wanda.", "Good."), turn(strings.Repeat("1b", 16), "s2", "My lantern comes from Quillon.", "Fine."))
	before := exportAll(t, m)
	id := idOf(t, m, "", "Wanda")
	acted(t, m, service.ChangeMany, service.ManyRequest{Do: "remove", Messages: []string{id}})
	m.Settle(t)
	run(t, m, service.Undo, service.UndoRequest{ID: newest(t, m).ID})
	m.Settle(t)
	if diff := cmp.Diff(linesOf(before), linesOf(exportAll(t, m))); diff != "" {
		t.Errorf("after the first undo (-before, +after):\n%s", diff)
	}
	acted(t, m, service.Forget, service.ForgetRequest{Selector: service.Selector{Group: groupOf(t, m, service.Selector{})}, Undoable: true})
	m.Settle(t)
	run(t, m, service.Undo, service.UndoRequest{ID: newest(t, m).ID})
	m.Settle(t)
	if diff := cmp.Diff(linesOf(before), linesOf(exportAll(t, m))); diff != "" {
		t.Errorf("after the undo (-before, +after):\n%s", diff)
	}
}

// TestForget_DeletesCopies checks that each deletion for good also deletes earlier copies for an
// undo.
func TestForget_DeletesCopies(t *testing.T) {
	own := func(t *testing.T, m *servicetest.Fixture) string { return groupOf(t, m, service.Selector{User: "me"}) }
	for name, tc := range map[string]struct {
		then func(t *testing.T, m *servicetest.Fixture, id string)
		gone bool
	}{
		"the change": {func(t *testing.T, m *servicetest.Fixture, id string) {
			run(t, m, service.Undo, service.UndoRequest{ID: id, Delete: true})
		}, true},
		"its group": {func(t *testing.T, m *servicetest.Fixture, _ string) {
			run(t, m, service.Forget, service.ForgetRequest{Selector: service.Selector{Group: groupOf(t, m, service.Selector{Workspace: "path:/w"})}})
		}, true},
		"the person": {func(t *testing.T, m *servicetest.Fixture, _ string) {
			run(t, m, service.Forget, service.ForgetRequest{Selector: service.Selector{Group: own(t, m)}})
		}, true},
		"its conversation": {func(t *testing.T, m *servicetest.Fixture, _ string) {
			run(t, m, service.Forget, service.ForgetRequest{Selector: service.Selector{Group: groupOf(t, m, service.Selector{Workspace: "path:/w"}), Session: "s", User: "me"}})
		}, true},
		"a message with the same text": {func(t *testing.T, m *servicetest.Fixture, _ string) {
			m.Say(t, "", "later", "path:/w", "Our database is MySQL.")
			m.Settle(t)
			id := idOf(t, m, "path:/w", "MySQL")
			run(t, m, service.ChangeMany, service.ManyRequest{Do: "forget", Messages: []string{id}})
		}, true},
		"another message": {func(t *testing.T, m *servicetest.Fixture, _ string) {
			m.Say(t, "", "later", "path:/w", "Our mascot is a heron.")
			m.Settle(t)
			id := idOf(t, m, "path:/w", "heron")
			run(t, m, service.ChangeMany, service.ManyRequest{Do: "forget", Messages: []string{id}})
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			m := servicetest.Open(t, t.TempDir(), servicetest.Options{})
			w := service.Selector{Workspace: "path:/w"}
			m.Say(t, "", "s", w.Workspace, "Our database is MySQL.")
			m.Say(t, "", "other", "", "I breed alpacas.")
			m.Settle(t)
			acted(t, m, service.Forget, service.ForgetRequest{Selector: service.Selector{Group: groupOf(t, m, w)}, Undoable: true})
			c := newest(t, m)
			if run(t, m, service.Groups, w).Groups[0].Empty {
				t.Error("a memory with a copy counts as empty, so no command deletes the copy")
			}
			tc.then(t, m, c.ID)
			copies := 0
			err := m.State.Snapshots.Each(t.Context(), func(string, []byte) error { copies++; return nil }, "removed:"+c.ID)
			if err != nil || (copies == 0) != tc.gone {
				t.Errorf("%d copies, %v", copies, err)
			}
			_, _, err = call(t, m, "memory/undo", `{"id":"`+c.ID+`"}`)
			if (err != nil) != tc.gone {
				t.Errorf("undo: %v", err)
			}
			if got := fmt.Sprint(run(t, m, service.History, service.HistoryRequest{Limit: 10}).Changes); tc.gone && strings.Contains(got, "MySQL") {
				t.Errorf("the history still has the text: %s", got)
			}
		})
	}
}

// TestUndo_OfAnother checks that only the person of a forgotten memory sees it in the history, undoes
// it, or deletes its copy.
func TestUndo_OfAnother(t *testing.T) {
	m := servicetest.Open(t, t.TempDir(), servicetest.Options{Multi: true})
	josh, ann, credential := everybody(t, m)
	do := func(who *somebody, op service.Mountable, in fields) (string, error) {
		said, ok, err := attempt(t, m, op, who.caller, in)
		if !ok {
			err = errors.New("no such field")
		}
		return said, err
	}
	for _, forget := range []fields{{"group": ann.self, "undoable": true}, {"group": ann.project, "undoable": true}} {
		must(t, helptest.ErrorOf(do(ann, service.Forget, forget)))
		list, err := do(ann, service.History, fields{"limit": 1})
		id := regexp.MustCompile(`"id":"([0-9a-f]{12})"`).FindStringSubmatch(list)
		if err != nil || id == nil || !strings.Contains(list, ann.secret) {
			t.Fatalf("the history of ann: %s, %v", list, err)
		}
		for _, other := range []*somebody{josh, credential} {
			for _, of := range []fields{{}, {"user": "ann"}, {"group": ann.self}, {"group": ann.project}} {
				in := maps.Clone(of)
				if said, _ := do(other, service.History, in); strings.Contains(said, id[1]) || strings.Contains(said, ann.secret) {
					t.Errorf("%s with %v sees %s", other.caller.Name, of, said)
				}
				for _, del := range []bool{false, true} {
					in := maps.Clone(of)
					maps.Copy(in, fields{"id": id[1], "delete": del})
					if said, err := do(other, service.Undo, in); err == nil {
						t.Errorf("%s with %v: %s", other.caller.Name, in, said)
					}
				}
			}
		}
		if said, err := do(ann, service.Undo, fields{"id": id[1]}); err != nil {
			t.Errorf("ann: %s, %v", said, err)
		}
		m.Settle(t)
		if said, err := do(ann, service.Show, fields{"group": forget["group"]}); err != nil || !strings.Contains(said, ann.secret) {
			t.Errorf("after the undo: %s, %v", said, err)
		}
	}
}

// TestUndo_Import checks that the undo of a file's import deletes the additions of the import only,
// and that the file can be imported again.
func TestUndo_Import(t *testing.T) {
	from, to := servicetest.Open(t, t.TempDir(), servicetest.Options{}), servicetest.Open(t, t.TempDir(), servicetest.Options{})
	everyState(t, from)
	export := exportAll(t, from)
	to.Talk(t, ownerIn(widgets, "before"), "Never commit to main.")
	before := exportAll(t, to)
	file := func(name string, lines []byte) string {
		im := service.FileImport{Lines: transcripts.Lines(bytes.NewReader(lines)), Name: name, Tell: func(int) {}, Call: func(ctx context.Context, in service.ImportRequest) (service.Imported, error) {
			out, _, err := service.Run(ctx, service.Import, to.Host, service.Operator, in)
			done, _ := out.(service.Imported)
			return done, err
		}}
		done, err := im.Run(t.Context(), service.Selector{})
		if err != nil || done.Kept == 0 || done.Undo == "" {
			t.Fatalf("import: %+v, %v", done, err)
		}
		to.Settle(t)
		return done.Undo
	}
	id := file("import-of-lines", []byte(`{"role":"user","content":"My cat is called Miso.","session":"pets"}`))
	run(t, to, service.Undo, service.UndoRequest{ID: id})
	for _, name := range []string{"import-1", "import-2"} {
		id = file(name, export)
		if got := strings.Count(string(exportAll(t, to)), "\n"); got < bytes.Count(export, []byte("\n")) {
			t.Errorf("%d lines after the import", got)
		}
		run(t, to, service.Undo, service.UndoRequest{ID: id})
		to.Settle(t)
		if diff := cmp.Diff(linesOf(before), linesOf(exportAll(t, to))); diff != "" {
			t.Errorf("after the undo (-before, +after):\n%s", diff)
		}
	}
}
