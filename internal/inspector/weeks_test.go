package inspector

import (
	"strings"
	"testing"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
	"github.com/graphiti-proxy/graphiti-proxy/internal/servicetest"
)

// TestWeeks checks that a project's page by week has its rules, decisions, and changed facts with their former
// texts, and no other messages.
func TestWeeks(t *testing.T) {
	m := servicetest.Open(t, t.TempDir(), servicetest.Options{})
	s := newSite(t, m)
	m.Say(t, "", "one", widgets, "We deploy to Fly.")
	m.Say(t, "", "one", widgets, "The cat is called Miso.")
	m.Say(t, "", "one", widgets, "We decided that the nightly job runs at four.")
	m.Say(t, "", "two", widgets, "We decided that the nightly job runs at four.")
	id, group := "", ""
	shown, err := service.Show.Run(t.Context(), m.Host, &service.ShowRequest{Selector: service.Selector{Workspace: widgets}, Last: 10})
	must(t, err)
	for _, r := range shown.Messages {
		if strings.Contains(r.Text, "Fly") {
			id, group = r.ID, r.Group
		}
	}
	if _, err := m.Memory.Promote(t.Context(), &service.PromoteRequest{Selector: service.Selector{Workspace: widgets}, Promotion: service.Promotion{Kind: "decision", Scope: "workspace", Text: "Commits are signed."}}); err != nil {
		t.Fatal(err)
	}
	redirects(t, s.post(t, "/message/"+id+"/correct", "group", group, "text", "We deploy to Render.", "back", "/"), "/?done=corrected&undo")
	m.Settle(t)
	at := "/memory/weeks?group=" + group
	now := time.Now().UTC()
	monday := now.AddDate(0, 0, -(int(now.Weekday())+6)%7).Format(time.DateOnly)
	if _, body := s.get(t, at); strings.Count(body, "nightly job") != 1 || !strings.Contains(body, `<span class="tag">decision</span> <span dir="auto">We decided that`) {
		t.Errorf("the decision is not listed once: %s", body)
	}
	for _, want := range []string{"Week of " + monday, "Commits are signed.", "We deploy to Render.", ": We deploy to Fly.", "since=" + monday, `aria-current="page">By week`} {
		s.has(t, at, want, true)
	}
	s.has(t, at, "Miso", false)
	s.has(t, "/memory/weeks?group="+servicetest.OwnersGroup, "No decision, changed fact", true)
}
