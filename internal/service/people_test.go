package service_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
	"github.com/graphiti-proxy/graphiti-proxy/internal/servicetest"
)

// people returns the listed people, one per line.
func people(c service.PeopleList) string {
	var b strings.Builder
	for _, p := range c.People {
		fmt.Fprintf(&b, "%s %+v %d/%d", p.Name, p.Means, p.Memories, p.Projects)
		if p.Registered {
			b.WriteString(" registered")
		}
		b.WriteString("\n")
	}
	return b.String()
}

// TestPeopleInSingleMode checks that in single mode the list has the owner first, and also other
// people, agents and system actors, and that other operations accept the selector of each.
func TestPeopleInSingleMode(t *testing.T) {
	m := servicetest.Open(t, t.TempDir(), servicetest.Options{})
	m.Say(t, "josh", "s", "", "My cat is called Miso.")
	m.Say(t, "josh", "s", widgets, "We use Postgres here.")
	m.Say(t, "ann", "s", "", "I like tea.")
	agent := turn(strings.Repeat("a", 32), "s", "Ava knows that the cat is called Miso.", "I see.")
	agent.Owner, agent.Targets = servicetest.Owner, []graphiti.Target{{Scope: graphiti.ScopeAgent, Group: "agent_ava__user_josh"}}
	actor := turn(strings.Repeat("b", 32), "s", "The release needs a reviewer called Miso.", "I see.")
	actor.Owner, actor.Targets = "system:bot", []graphiti.Target{{Scope: graphiti.ScopeSystem, Group: "system_bot"}}
	add(t, m, func() { m.Settle(t) }, agent)
	add(t, m, func() { m.Settle(t) }, actor)
	all := run(t, m, service.ListPeople, service.PeopleRequest{Limit: 10})
	lines := people(all)
	for _, want := range []string{"you {User:user:josh ", "ann {User:user:ann ", "an agent of you, agent_ava__user_josh {User: Agent: Workspace: Session: Group:agent_ava__user_josh", "the system actor bot {User: Agent: Workspace: Session: Group:system_bot"} {
		if !strings.Contains(lines, want) {
			t.Errorf("%q is missing in\n%s", want, lines)
		}
	}
	if you := all.People[0]; all.AllPeople != 4 || you.Name != "you" || !you.Registered || !you.Admin || you.Memories != 3 || you.Projects != 1 || you.Last == "" || you.Only != nil {
		t.Errorf("%d: %+v", all.AllPeople, you)
	}
	for _, p := range all.People {
		list, err := service.List.Run(t.Context(), m.Host, &service.ListRequest{Selector: p.Means, Limit: 10})
		if err != nil || len(list.Memories) != p.Memories && p.Name != "you" || list.Memories[0].Messages == 0 {
			t.Errorf("%s: memory/list: %+v, %v", p.Name, list, err)
		}
		if _, err := service.Show.Run(t.Context(), m.Host, &service.ShowRequest{Selector: p.Means, Last: 5}); err != nil {
			t.Errorf("%s: memory/show: %v", p.Name, err)
		}
		if _, err := service.Search.Run(t.Context(), m.Host, &service.SearchRequest{Selector: p.Means, Query: "Miso?"}); err != nil {
			t.Errorf("%s: memory/search: %v", p.Name, err)
		}
		if meant, err := service.Groups.Run(t.Context(), m.Host, &p.Means); err != nil || len(meant.Groups) == 0 {
			t.Errorf("%s: memory/groups, which memory/forget needs: %+v, %v", p.Name, meant, err)
		}
		if _, err := service.Stats.Run(t.Context(), m.Host, &p.Means); err != nil {
			t.Errorf("%s: memory/stats: %v", p.Name, err)
		}
	}
	for text, want := range map[string]string{"ANN": "ann", "user:josh": "you", "the system": "the system actor bot"} {
		if found := run(t, m, service.ListPeople, service.PeopleRequest{Find: text, Limit: 10}); found.AllPeople != 1 || found.People[0].Name != want || found.People[0].Messages < 2 || found.People[0].Bytes < 10 {
			t.Errorf("%q: %+v", text, found)
		}
	}
	if one := run(t, m, service.ListPeople, service.PeopleRequest{Limit: 1}); len(one.People) != 1 || one.AllPeople != 4 || one.People[0].Name != "you" {
		t.Errorf("one of them: %+v", one)
	}
	if _, _, err := call(t, m, "memory/people", `{"limit":0}`); err == nil {
		t.Error("a limit of 0 is taken")
	}
}

// TestPeopleOfManyTenants checks that an unregistered credential is listed with the ids
// of its groups and without its own hash, and that only operators see the list.
func TestPeopleOfManyTenants(t *testing.T) {
	m := servicetest.Open(t, t.TempDir(), servicetest.Options{Multi: true})
	credential := service.Selector{Credential: "sha256:" + strings.Repeat("1a", 32)}
	for _, s := range []service.Selector{credential, {Credential: credential.Credential, Workspace: widgets}, {User: "ann"}} {
		scope := "user"
		if s.Workspace != "" {
			scope = "workspace"
		}
		run(t, m, service.Import, service.ImportRequest{Selector: s, Lines: []service.Line{{Scope: scope, Role: "user", Content: "My cat is called Miso."}}})
	}
	m.Settle(t)
	all := run(t, m, service.ListPeople, service.PeopleRequest{Limit: 10})
	if all.AllPeople != 3 || strings.Contains(fmt.Sprint(all), strings.Repeat("1a", 32)) {
		t.Errorf("%+v", all)
	}
	for _, p := range all.People {
		switch {
		case strings.HasPrefix(p.Name, "an unregistered credential, "):
			if len(p.Only) != 2 || p.Memories != 2 || p.Projects != 1 || !strings.Contains(p.Means.Group, "user_") {
				t.Errorf("%+v", p)
			}
		case p.Name == "ann":
			if p.Means != (service.Selector{User: "user:ann"}) || p.Registered {
				t.Errorf("%+v", p)
			}
		case p.Name != "Josh" || !p.Registered || p.Memories != 0:
			t.Errorf("%+v", p)
		}
		if list, err := service.List.Run(t.Context(), m.Host, &service.ListRequest{Selector: p.Means, Limit: 10}); err != nil || p.Memories > 0 && len(list.Memories) == 0 {
			t.Errorf("%s: %+v, %v", p.Name, list, err)
		}
	}
	var forbidden service.ForbiddenError
	_, _, err := service.ListPeople.Call(t.Context(), m.Host, service.Caller{Own: service.Selector{User: "ann"}}, func(any) error { return nil }, nil)
	if !errors.As(err, &forbidden) {
		t.Errorf("somebody else sees the list: %v", err)
	}
}
