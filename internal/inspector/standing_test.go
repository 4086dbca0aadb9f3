package inspector

import (
	"net/http"
	"strings"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
	"github.com/graphiti-proxy/graphiti-proxy/internal/servicetest"
)

const widgets = "github_repo:github.com/acme/widgets"

// has checks that a page shows a text or, if want is false, that it does not.
func (s *site) has(t *testing.T, at, what string, want bool) {
	t.Helper()
	status, body := s.get(t, at)
	s.wellFormed(t, at, body)
	if status != http.StatusOK || strings.Contains(body, what) != want {
		t.Errorf("%s: got %d, %q on it: %t, want %t", at, status, what, !want, want)
	}
}

// lineSaying returns the ID of the owner's line with a text.
func (s *site) lineSaying(t *testing.T, text string) string {
	t.Helper()
	got, err := service.Pending.Run(t.Context(), s.Host, &service.PendingRequest{All: true})
	must(t, err)
	for _, l := range got.Lines {
		if l.Text == text {
			return l.ID
		}
	}
	t.Fatalf("got %+v, want a line with %q", got.Lines, text)
	return ""
}

// TestWaitingLinesAreDecidedOnToday checks that the first page lists waiting lines with
// their origin, and that the notice of a decision offers to undo it.
func TestWaitingLinesAreDecidedOnToday(t *testing.T) {
	m := servicetest.Open(t, t.TempDir(), servicetest.Options{})
	s := newSite(t, m)
	who := graphiti.Who{User: servicetest.Owner, Workspace: widgets, Session: "one", Program: "codex"}
	m.Say(t, "", "one", widgets, "Always use tabs.")
	m.Hear(t, who, "Always use tabs.")
	m.Hear(t, who, "Remember that my cat is called Miso.")
	for _, want := range []string{"2 lines waiting", `id="waiting"`, "Always use tabs.", "my cat is called Miso", "stated in the project acme/widgets", "Accept all", `data-key="a"`} {
		s.has(t, "/", want, true)
	}
	tabs, cat := s.lineSaying(t, "Always use tabs."), s.lineSaying(t, "my cat is called Miso")

	redirects(t, s.post(t, "/memory/lines", "do", "accept", "id", tabs, "back", "/"), "/?done=line-accepted&undo")
	s.has(t, "/?done=line-accepted&undo="+tabs, `data-key="u"`, true)
	s.has(t, "/", "Always use tabs.", false)
	s.has(t, "/memory/show?group="+servicetest.OwnersGroup, "The card", true)
	s.undoLast(t)
	s.has(t, "/", "Always use tabs.", true)

	redirects(t, s.post(t, "/memory/lines", "do", "reject", "id", tabs, "id", cat), "/?done=line-rejected&undo")
	s.has(t, "/", `id="waiting"`, false)
	for name, fields := range map[string][]string{"nothing to do": {"id", tabs}, "no line": {"do", "accept"}, "another thing": {"do", "burn", "id", tabs}} {
		if w := s.post(t, "/memory/lines", fields...); w.Code != http.StatusNotFound {
			t.Errorf("%s: got %d, want 404", name, w.Code)
		}
	}
	if w := s.post(t, "/memory/lines", "do", "accept", "id", "0123"); w.Code == http.StatusSeeOther {
		t.Errorf("an unknown line: got %d, want an error", w.Code)
	}
	s.has(t, "/?undo="+tabs, "Undo", false)
}

// TestCardIsEdited checks that a line can be taken off the card, put back and replaced by
// another text, and that the page lists superseded lines.
func TestCardIsEdited(t *testing.T) {
	m := servicetest.Open(t, t.TempDir(), servicetest.Options{})
	s := newSite(t, m)
	at := "/memory/show?group=" + servicetest.OwnersGroup
	promote := func(text string) {
		t.Helper()
		if _, err := m.Memory.Promote(t.Context(), &service.PromoteRequest{Promotion: service.Promotion{Kind: "preference", Text: text}}); err != nil {
			t.Fatal(err)
		}
		m.Settle(t)
	}
	promote("Always answer in English.")
	english := s.lineSaying(t, "Always answer in English.")
	redirects(t, s.post(t, "/memory/lines", "do", "end", "id", english, "back", at), at[:len("/memory/show?")]+"done=line-ended&group="+servicetest.OwnersGroup+"&undo")
	s.has(t, at, "The card", false)
	s.has(t, at, `value="accept"`, true)
	s.post(t, "/memory/lines", "do", "accept", "id", english)
	s.has(t, at, "The card", true)

	m.Hear(t, graphiti.Who{User: servicetest.Owner, Program: "codex", Application: "a"}, "Always use tabs.")
	tabs := s.lineSaying(t, "Always use tabs.")
	s.post(t, "/memory/lines", "do", "edit", "id", tabs, "text", "Always use two spaces.")
	if got := s.lineSaying(t, "Always use two spaces."); got != tabs {
		t.Errorf("the edited line is %s, want %s", got, tabs)
	}
	s.has(t, at, "Always use two spaces.", true)
	s.has(t, at, "Always use tabs.", false)
	s.undoLast(t)
	s.has(t, at, "Always use two spaces.", false)

	m.Hear(t, graphiti.Who{User: servicetest.Owner, Program: "codex", Application: "a"}, "Always answer in French.")
	s.has(t, "/", "Always answer in French.", true)
	promote("Always answer in German.")
	s.has(t, at, "superseded by a newer line", true)
	s.has(t, "/", "Always answer in French.", false)
}

// TestEndedMessagesAreRestored checks that an ended message is marked in the list of facts
// and on its own page, and can be restored.
func TestEndedMessagesAreRestored(t *testing.T) {
	m := servicetest.Open(t, t.TempDir(), servicetest.Options{})
	s := newSite(t, m)
	facts := "/search?kind=fact&project=" + servicetest.OwnersGroup
	m.Talk(t, graphiti.Who{User: servicetest.Owner, Session: "one"}, "Remember that my cat is called Miso.")
	id := s.idOf(t, "Miso")
	page := "/message/" + id + "?group=" + servicetest.OwnersGroup
	if h := m.Hear(t, graphiti.Who{User: servicetest.Owner, Session: "two"}, "Forget that my cat is called Miso."); h.Ended != 1 {
		t.Fatalf("got %+v, want one ended", h)
	}
	s.has(t, facts+"&state=valid", "Miso", false)
	s.has(t, facts, "tag\">ended", true)
	s.has(t, facts, "/message/"+id+"/restore", true)
	s.has(t, page, "You ended this", true)
	redirects(t, s.post(t, "/message/"+id+"/restore", "group", servicetest.OwnersGroup, "back", "/memory"), "/memory?done=restore&undo")
	s.has(t, facts, "Miso", true)
	s.has(t, page, "You ended this", false)
}

// TestPeopleDecideOnTheirOwnLines checks that a person sees and accepts only their own
// lines, and that an operator sees the lines of a selected person.
func TestPeopleDecideOnTheirOwnLines(t *testing.T) {
	m := servicetest.Open(t, t.TempDir(), servicetest.Options{Multi: true})
	s := newSite(t, m)
	for _, name := range []string{"ann", "bob"} {
		who := graphiti.Who{User: "user:" + name, Application: name}
		who.SetPerson()
		m.Say(t, name, "one", "", "Always sign as "+name+".")
		if h := m.Hear(t, who, "Always sign as "+name+"."); h.Pending != 1 {
			t.Fatalf("%s: got %+v, want one pending", name, h)
		}
	}
	s.has(t, "/", "waiting", false)
	s.has(t, "/?user=bob", "Always sign as bob.", true)
	lines, err := service.Pending.Run(t.Context(), s.Host, &service.PendingRequest{Selector: service.Selector{User: "bob"}})
	if err != nil || len(lines.Lines) != 1 {
		t.Fatalf("got %+v, %v; want bob's line", lines, err)
	}
	s.caller = service.Caller{Name: "ann", Own: service.Selector{User: "user:ann"}}
	s.has(t, "/", "Always sign as ann.", true)
	s.has(t, "/", "Always sign as bob.", false)
	for _, fields := range [][]string{{"user", "bob"}, nil} {
		if w := s.post(t, "/memory/lines", append(fields, "do", "accept", "id", lines.Lines[0].ID)...); w.Code == http.StatusSeeOther {
			t.Errorf("%v: ann accepted bob's line: %d", fields, w.Code)
		}
	}
	s.post(t, "/memory/lines", "do", "accept", "id", "all")
	s.has(t, "/", "Always sign as ann.", false)
}

// TestALineIsLimitedToAProject checks that the card and a search offer to limit a line of all projects to
// one, and that the line is then on the card of that project only.
func TestALineIsLimitedToAProject(t *testing.T) {
	m := servicetest.Open(t, t.TempDir(), servicetest.Options{})
	s := newSite(t, m)
	m.Say(t, "", "one", widgets, "We use Postgres.")
	if _, err := m.Memory.Promote(t.Context(), &service.PromoteRequest{Promotion: service.Promotion{Kind: "preference", Text: "Use tabs."}}); err != nil {
		t.Fatal(err)
	}
	m.Settle(t)
	own := "/memory/show?group=" + servicetest.OwnersGroup
	for _, page := range []string{own, "/search?kind=rule"} {
		s.has(t, page, `<option value="`+widgets+`">only in acme/widgets</option>`, true)
	}
	w := s.post(t, "/memory/lines", "do", "edit", "id", s.lineSaying(t, "Use tabs."), "text", "Use tabs in Go.", "to", widgets, "back", own)
	redirects(t, w, "/memory/show?done=line-limited&group="+servicetest.OwnersGroup+"&undo")
	m.Settle(t)
	s.has(t, w.Header().Get("Location"), `action="/changes/undo"`, true)
	s.has(t, own, `id="card"`, false)
	s.has(t, "/changes", "Limited to a project", true)
	list, err := m.Memory.Catalog(t.Context(), &service.ListRequest{Limit: 10})
	must(t, err)
	for _, k := range list.Memories {
		if k.Scope == "workspace" {
			s.has(t, "/memory/show?group="+k.Group, "Use tabs in Go.", true)
			s.has(t, "/memory/show?group="+k.Group, "only in acme", false)
		}
	}
}

// undoLast undoes the last change of the history.
func (s *site) undoLast(t *testing.T) {
	t.Helper()
	out, _, err := service.Run(t.Context(), service.History, s.Host, service.Operator, service.HistoryRequest{Limit: 1})
	must(t, err)
	list := out.(service.Changes).Changes //nolint:forcetypeassert // the output of History
	redirects(t, s.post(t, "/changes/undo", "id", list[0].ID, "back", "/"), "/?done=line-undone")
}
