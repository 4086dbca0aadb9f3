package service_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/internal/helptest"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
	"github.com/graphiti-proxy/graphiti-proxy/internal/servicetest"
)

// recalled returns the search results for a question that a block would show.
func recalled(t *testing.T, m *servicetest.Fixture, s service.Selector, question string) string {
	t.Helper()
	list := ""
	for _, f := range run(t, m, service.Search, service.SearchRequest{Selector: s, Query: question}).Facts {
		if f.Omitted() == "" {
			list += f.Text + "\n"
		}
	}
	return list
}

// acted runs an operation as the operator calls it, which adds its change to the history.
func acted(t *testing.T, m *servicetest.Fixture, op service.Mountable, in any) {
	t.Helper()
	if _, _, err := service.Run(t.Context(), op, m.Host, service.Operator, in); err != nil {
		t.Fatal(err)
	}
}

// TestUndo checks that each change of messages and lines is in the history with its texts, that an
// undo restores the recall from before, and that the same change can be made and undone again.
func TestUndo(t *testing.T) {
	const question = "Which database is ours?"
	message := func(t *testing.T, m *servicetest.Fixture) string {
		_, id := texts(t, m, "MySQL")
		return id
	}
	for name, tc := range map[string]struct {
		change         func(t *testing.T, m *servicetest.Fixture)
		what, old, new string
		recalls        string // after the change, instead of MySQL
	}{
		"correct": {func(t *testing.T, m *servicetest.Fixture) {
			acted(t, m, service.Correct, service.CorrectRequest{Selector: service.Selector{Message: message(t, m)}, Text: "Our database is Postgres."})
		}, "correct", "MySQL", "Postgres", "Postgres"},
		"end": {func(t *testing.T, m *servicetest.Fixture) {
			acted(t, m, service.ChangeMany, service.ManyRequest{Do: "end", Messages: []string{message(t, m)}})
		}, "end", "MySQL", "", ""},
		"move": {func(t *testing.T, m *servicetest.Fixture) {
			acted(t, m, service.ChangeMany, service.ManyRequest{Do: "move", Messages: []string{message(t, m)}, To: "path:/w"})
		}, "move", "MySQL", "MySQL", ""},
	} {
		t.Run(name, func(t *testing.T) {
			memories(t, func(t *testing.T, m *servicetest.Fixture, settle func()) {
				for i := range 2 { // with a copy
					m.Say(t, "", fmt.Sprint("s", i), "", "Our database is MySQL.")
				}
				for range 2 {
					settle()
					tc.change(t, m)
					settle()
					if got := recalled(t, m, service.Selector{}, question); strings.Contains(got, "MySQL") || !strings.Contains(got, tc.recalls) {
						t.Errorf("recalled after the change: %q", got)
					}
					list := run(t, m, service.History, service.HistoryRequest{Limit: 10}).Changes
					c := list[0]
					before, after := c.Texts()
					if c.What != tc.what || c.By == "" || c.Until == "" || !strings.Contains(fmt.Sprint(before), tc.old) || !strings.Contains(fmt.Sprint(after), tc.new) {
						t.Errorf("history: %+v", c)
					}
					if name == "move" {
						if got := recalled(t, m, service.Selector{Workspace: "path:/w"}, question); !strings.Contains(got, "MySQL") {
							t.Errorf("recalled in the project: %q", got)
						}
					}
					run(t, m, service.Undo, service.UndoRequest{ID: c.ID})
					if got := recalled(t, m, service.Selector{}, question); !strings.Contains(got, "MySQL") || tc.recalls != "" && strings.Contains(got, tc.recalls) {
						t.Errorf("recalled after the undo: %q", got)
					}
					if got := recalled(t, m, service.Selector{Workspace: "path:/w"}, "Which database is this project's?"); name == "move" && strings.Contains(got, "MySQL") {
						t.Errorf("recalled in the project after the undo: %q", got)
					}
					if _, _, err := call(t, m, "memory/undo", `{"id":"`+c.ID+`"}`); err == nil || !strings.Contains(err.Error(), "undone already") {
						t.Errorf("undo again: %v", err)
					}
				}
			})
		})
	}
}

// TestUndo_Chat checks that the history has the statements that a message ended.
func TestUndo_Chat(t *testing.T) {
	m := servicetest.Open(t, t.TempDir(), servicetest.Options{})
	w := service.Selector{Workspace: "path:/w"}
	m.Say(t, "", "s", w.Workspace, "Our database is MySQL.")
	m.Hear(t, graphiti.Who{User: servicetest.Owner, Session: "session:later", Workspace: w.Workspace}, "Forget that our database is MySQL.")
	list := run(t, m, service.History, service.HistoryRequest{Limit: 5}).Changes
	if len(list) != 1 || list[0].What != "end" || recalled(t, m, w, "Which database is ours?") != "" {
		t.Fatalf("%+v", list)
	}
	run(t, m, service.Undo, service.UndoRequest{ID: list[0].ID})
	if got := recalled(t, m, w, "Which database is ours?"); !strings.Contains(got, "MySQL") {
		t.Errorf("recalled after the undo: %q", got)
	}
}

// TestUndo_Lines checks that pins and decisions on lines of the card can be undone.
func TestUndo_Lines(t *testing.T) {
	m := servicetest.Open(t, t.TempDir(), servicetest.Options{})
	pin := service.PromoteRequest{Promotion: service.Promotion{Kind: "decision", Text: "We deploy on Mondays"}}
	card := func() string { return fmt.Sprint(run(t, m, service.Show, service.ShowRequest{Last: 5}).Card) }
	undo := func(what string) {
		t.Helper()
		c := run(t, m, service.History, service.HistoryRequest{Limit: 1}).Changes[0]
		if c.What != what || !strings.Contains(fmt.Sprint(c.Parts), "We deploy on Mondays") {
			t.Errorf("%+v, want %s", c, what)
		}
		run(t, m, service.Undo, service.UndoRequest{ID: c.ID})
	}
	for range 2 {
		acted(t, m, service.Promote, pin)
		m.Settle(t)
		endLine(t, m, service.Selector{}, "We deploy on Mondays")
		if strings.Contains(card(), "Mondays") {
			t.Error("it is still on the card")
		}
		if undo("off"); !strings.Contains(card(), "Mondays") {
			t.Error("the undo of a removal did not restore the line")
		}
		id := slices.Collect(func(yield func(string) bool) {
			for _, l := range run(t, m, service.Pending, service.PendingRequest{All: true}).Lines {
				_ = yield(l.ID)
			}
		})
		acted(t, m, service.Settle, service.SettleRequest{End: id})
		if undo("off"); !strings.Contains(card(), "Mondays") {
			t.Error("the undo of an end did not restore the line")
		}
		run(t, m, service.Undo, service.UndoRequest{ID: run(t, m, service.History, service.HistoryRequest{Limit: 10}).Changes[2].ID}) // the pin
		if got := card() + recalled(t, m, service.Selector{}, "When do we deploy?"); strings.Contains(got, "Mondays") {
			t.Errorf("the undo of a pin left %s", got)
		}
	}
}

// TestUndo_Forget checks that the history names a deletion without its text, and refuses its undo;
// and that forgetting a memory deletes the changes of it.
func TestUndo_Forget(t *testing.T) {
	m := servicetest.Open(t, t.TempDir(), servicetest.Options{})
	m.Say(t, "", "s", "", "Our database is MySQL.")
	m.Say(t, "", "s", "", "Our cat is called Miso.")
	_, id := texts(t, m, "MySQL")
	acted(t, m, service.ChangeMany, service.ManyRequest{Do: "end", Messages: []string{id}})
	_, cat := texts(t, m, "Miso")
	acted(t, m, service.Forget, service.ForgetRequest{Selector: service.Selector{Message: cat}})
	list := run(t, m, service.History, service.HistoryRequest{Limit: 10}).Changes
	if len(list) != 2 || list[0].What != "forget" || list[0].Until != "" || strings.Contains(fmt.Sprint(list), "Miso") {
		t.Fatalf("%+v", list)
	}
	if _, _, err := call(t, m, "memory/undo", `{"id":"`+list[0].ID+`"}`); err == nil || !strings.Contains(err.Error(), "for good") {
		t.Errorf("undo of a deletion: %v", err)
	}
	acted(t, m, service.Forget, service.ForgetRequest{Selector: service.Selector{Group: servicetest.OwnersGroup}})
	if list := run(t, m, service.History, service.HistoryRequest{Limit: 10}).Changes; len(list) != 1 || list[0].What != "forget" {
		t.Errorf("history after the memory was forgotten: %+v", list)
	}
}

// TestMovedMessageIsShownOnce checks that a conversation shows a moved message in the place of its
// original, from its new memory, and the original again after an undo.
func TestMovedMessageIsShownOnce(t *testing.T) {
	memories(t, func(t *testing.T, m *servicetest.Fixture, settle func()) {
		m.Say(t, "", "s", "", "Our database is MySQL.")
		m.Say(t, "", "s", "", "The port is 5432.")
		settle()
		_, id := texts(t, m, "MySQL")
		talk := func() (groups []string) {
			x := run(t, m, service.TurnsOf, service.ConversationRequest{Hash: graphiti.SessionHash("session:s"), Limit: 10})
			for _, turn := range x.Turns {
				for _, r := range turn.Messages {
					if strings.Contains(r.Text, "MySQL") {
						groups = append(groups, r.Group+r.Ended)
						if turn.Messages[0].Role != r.Role {
							t.Errorf("the message is not the first of its turn: %+v", turn)
						}
					}
				}
			}
			return groups
		}
		before := talk()
		acted(t, m, service.ChangeMany, service.ManyRequest{Do: "move", Messages: []string{id}, To: "path:/w"})
		settle()
		if moved := talk(); len(before) != 1 || len(moved) != 1 || moved[0] == before[0] {
			t.Errorf("in %q, and after the move in %q; want two memories, one each", before, moved)
		}
		c := run(t, m, service.History, service.HistoryRequest{Limit: 1}).Changes[0]
		acted(t, m, service.Undo, service.UndoRequest{ID: c.ID})
		settle()
		if undone := talk(); !slices.Equal(undone, before) {
			t.Errorf("after the undo in %q, want %q", undone, before)
		}
	})
}

// TestVersionsOfAFact checks that a fact has its former texts, the oldest first, with the end of
// each: texts replaced by corrections, and by a model.
func TestVersionsOfAFact(t *testing.T) {
	m := servicetest.Open(t, t.TempDir(), servicetest.Options{})
	versions := func(kind, text string) string {
		list := ""
		for _, h := range run(t, m, service.Search, service.SearchRequest{Query: text, SearchFilter: service.SearchFilter{Kind: service.KindFact, State: "valid"}, Limit: 9}).Facts {
			if !strings.Contains(h.Text, text) {
				continue
			}
			for _, v := range h.Before {
				list += v.Text + " "
				if v.Until == "" || (kind == "corrected") != (v.By != "") {
					t.Errorf("version: %+v", v)
				}
			}
		}
		return strings.TrimSpace(list)
	}
	m.Say(t, "", "s", "", "Our database is MySQL.")
	for _, one := range []struct{ from, to string }{{"MySQL", "Our database is Postgres."}, {"Postgres", "Our database is SQLite."}} {
		_, id := texts(t, m, one.from)
		acted(t, m, service.Correct, service.CorrectRequest{Selector: service.Selector{Message: id}, Text: one.to})
	}
	if got, want := versions("corrected", "SQLite"), "Our database is MySQL. Our database is Postgres."; got != want {
		t.Errorf("corrected from %q, want %q", got, want)
	}
	c := run(t, m, service.History, service.HistoryRequest{Limit: 1}).Changes[0]
	acted(t, m, service.Undo, service.UndoRequest{ID: c.ID})
	if got, want := versions("corrected", "Postgres"), "Our database is MySQL."; got != want {
		t.Errorf("after the undo corrected from %q, want %q", got, want)
	}
	m.Say(t, "", "s", "", "About our ports.")
	d, _ := m.Backend.Distiller()
	var source string
	for r, err := range m.Backend.Rows(t.Context(), servicetest.OwnersGroup, graphiti.Filter{Last: 1, Text: true}) {
		must(t, err)
		source = r.Name
	}
	var facts []graphiti.Distilled
	for i, port := range []string{"5001", "5002", "5003"} {
		f := graphiti.Distilled{Name: "fact." + port, Text: "The port is " + port + ".", Role: graphiti.RoleUser, Sources: []string{source}, Since: time.Now().Add(time.Duration(i-9) * time.Hour)}
		if i < 2 {
			f.EndedBy, f.Until = fmt.Sprint("fact.500", i+2), f.Since.Add(time.Hour)
		}
		facts = append(facts, f)
	}
	must(t, helptest.ErrorOf(d.RestoreDistilled(t.Context(), servicetest.OwnersGroup, facts)))
	if got, want := versions("replaced", "5003"), "The port is 5001. The port is 5002."; got != want {
		t.Errorf("replaced %q, want %q", got, want)
	}
}
