package service_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
	"github.com/graphiti-proxy/graphiti-proxy/internal/servicetest"
)

const (
	widgets = "github_repo:github.com/acme/widgets"
	token   = "ghp_R4kT9wQz7LmX2vBn8JcY5hDf3GsP6aEu1ToK"
)

// call runs an operation with JSON input, as a mount does.
func call(t *testing.T, m *servicetest.Fixture, name, in string) (out any, e service.Entry, err error) {
	t.Helper()
	i := slices.IndexFunc(service.Operations(), func(op service.Mountable) bool { s, _, _, _ := op.Describe(); return s.Name == name })
	if i < 0 {
		t.Fatalf("there is no operation %s", name)
	}
	var many []any
	out, e, err = service.Operations()[i].Call(t.Context(), m.Host, service.Operator, func(v any) error {
		d := json.NewDecoder(strings.NewReader(in))
		d.DisallowUnknownFields()
		return d.Decode(v)
	}, func(one any) error { many = append(many, one); return nil })
	if many != nil {
		out = many
	}
	return out, e, err
}

// run runs an operation that must not fail and returns its result.
func run[In, Out any](t *testing.T, m *servicetest.Fixture, op service.Operation[In, Out], in In) Out {
	t.Helper()
	out, err := op.Run(t.Context(), m.Host, &in)
	if err != nil {
		t.Fatalf("%s: %v", op.Name, err)
	}
	return out
}

// export returns everything stored in a group, or in a session of it, but for the lines of its card.
func export(t *testing.T, m *servicetest.Fixture, in service.Selector) (list []service.Record) {
	t.Helper()
	err := service.Export.Each(t.Context(), m.Host, &in, func(r service.Record) error {
		if r.Where != "rule" {
			list = append(list, r)
		}
		return nil
	})
	must(t, err)
	return list
}

// TestRefused checks that operations refuse unusable input with a reason, and that audit
// entries contain no credentials. Only input that is invalid by itself causes an
// InvalidError.
func TestRefused(t *testing.T) {
	m := servicetest.Open(t, t.TempDir(), servicetest.Options{})
	const noGroup, bad = "is not the id of a group", `"group":"bad group! ünï/x"`
	for _, tc := range []struct {
		op, in, says string
		valid        bool // valid by itself
	}{
		{"memory/promote", `{"kind":"decision","text":"x",` + bad + `}`, noGroup, false},
		{"memory/show", `{` + bad + `}`, noGroup, false},
		{"memory/search", `{"query":"x",` + bad + `}`, noGroup, false},
		{"memory/groups", `{` + bad + `}`, noGroup, false},
		{"memory/forget", `{` + bad + `}`, noGroup, false},
		{"memory/export", `{` + bad + `}`, noGroup, false},
		{"memory/import", `{"lines":[{"role":"user","content":"x"}],` + bad + `}`, noGroup, false},
		{"memory/import", `{"lines":[{"role":"user","content":"x","group":"a/b"}]}`, noGroup, true},

		{"memory/promote", `{"kind":"decision","text":" "}`, "write the text to store", false},
		{"memory/promote", `{"kind":"idea","text":"x"}`, "write one of decision", false},
		{"memory/promote", `{"kind":"decision","scope":"galaxy","text":"x"}`, "write user, workspace", true},
		{"memory/promote", `{"kind":"decision","scope":"workspace","text":"x"}`, "needs a workspace", true},
		{"memory/promote", `{"kind":"decision","group":"team-notes","text":"x"}`, "next to the group", true},
		{"memory/promote", `{"kind":"procedure","text":"` + strings.Repeat("é", 8001) + `"}`, "8000", false},
		{"memory/promote", `{"kind":"preference","text":"the token is ` + token + `"}`, "credential", false},

		{"memory/show", `{"last":0}`, "last must be 1 to 10000", false},
		{"memory/show", `{"last":10001}`, "last must be 1 to 10000", false},
		{"memory/show", `{"user":"josh","own":true}`, "own: adds", false},
		{"memory/show", `{"before":"yesterday"}`, `before: "yesterday" is not a time; write e.g. 2026-11-25T12:00:00Z`, false},
		{"memory/list", `{"limit":0}`, "limit must be 1 to 1000", false},
		{"memory/list", `{"limit":1001}`, "limit must be 1 to 1000", false},
		{"memory/list", `{"workspace":"w"}`, "only a person's memories can be listed", false},
		{"memory/search", `{"query":" "}`, "query: is empty", false},
		{"memory/search", `{"query":"x","colour":"red"}`, `unknown field "colour"`, false},

		{"memory/import", `{"lines":[]}`, "send 1 to 4000 lines", false},
		{"memory/import", `{"lines":[{"role":"user"}]}`, "line 1: content: is empty", true},
		{"memory/import", `{"lines":[{"role":"user","content":"x"},{"role":"tool","content":"x"}]}`, `line 2: role: unknown role "tool"`, true},
		{"memory/import", `{"lines":[{"role":"user","content":"x","number":7,"timestamp":"yesterday"}]}`, "line 7: timestamp", true},

		{"memory/forget", `{"group":"g","session":""}`, "session is empty: remove it, or give it a value", false},
		{"memory/forget", `{"group":"g","message":""}`, "message is empty: remove it, or give it a value", false},
		{"memory/forget", `{"group":""}`, "group is empty: remove it, or give it a value", false},
		{"memory/forget", `{"group":"g","sesion":"s1"}`, `unknown field "sesion"`, false},
		{"memory/forget", `{"group":7}`, "json: cannot unmarshal number", false},
		{"memory/forget", `{}`, "name one group", false},
		{"memory/forget", `{"user":"josh"}`, "name one group", false},
		{"memory/export", `{}`, "name one group", false},

		{"requests", `{"limit":0}`, "limit must be 1 to 1000", false},
		{"requests", `{"after":-1}`, "after must be the number of a request", false},

		{"queue/turns", `{"state":"lost"}`, `state: "lost" is not one of`, false},
		{"queue/turns", `{"limit":0}`, "limit must be 1 to 1000", false},
		{"queue/retry", `{}`, "name the turns by their numbers", false},
		{"queue/drop", `{"all":true,"numbers":[1]}`, "name the turns by their numbers", false},
		{"memory/send", `{"since":"soon"}`, "write the date of the first turn", false},
		{"registry/accept", `{"id":"ann"}`, `has the id "ann"`, false},
	} {
		_, e, err := call(t, m, tc.op, tc.in)
		if err == nil || !strings.Contains(err.Error(), tc.says) || strings.Contains(err.Error(), "\n") != strings.HasPrefix(tc.says, "cannot") {
			t.Errorf("%s %.80s: %v, want %q", tc.op, tc.in, err, tc.says)
		}
		if invalid := errors.As(err, new(service.InvalidError)); invalid == tc.valid {
			t.Errorf("%s %.80s: invalid %v, %v", tc.op, tc.in, invalid, err)
		}
		if strings.Contains(fmt.Sprint(e), token) {
			t.Errorf("%s: %v", tc.op, e)
		}
	}
	multi := servicetest.Open(t, t.TempDir(), servicetest.Options{Multi: true})
	for op, says := range map[string]string{"memory/list": "name a person with", "memory/show": "name a memory with", "memory/groups": "name a memory with"} {
		if _, _, err := call(t, multi, op, `{}`); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s of nobody: %v", op, err)
		}
	}
}

// TestGroupsOfSeveralPeople checks that groups that others wrote to are marked as shared
// and exported with their messages, and that Show and Search name the other groups of a
// person.
func TestGroupsOfSeveralPeople(t *testing.T) {
	m := servicetest.Open(t, t.TempDir(), servicetest.Options{})
	for _, said := range [][3]string{
		{"josh", "both", "We use Postgres here."}, {"ann", "both", "We use Redis here too."},
		{"ann", "hers", "This is mine alone."}, {"josh", "his", "And this is mine."}, {"josh", "", "I like tea."},
	} {
		m.Say(t, said[0], "s", said[1], said[2])
	}
	for _, tc := range []struct {
		in   service.Selector
		want string // groups, with +others if others wrote to them
	}{
		{service.Selector{}, "user_josh workspace_both+others workspace_his"},
		{service.Selector{User: "me"}, "user_josh workspace_both+others workspace_his"},
		{service.Selector{User: "ann"}, "user_ann(empty) workspace_both+others workspace_hers"},
		{service.Selector{User: "josh", Workspace: "hers"}, "workspace_hers+others"},
		{service.Selector{Workspace: "both"}, "workspace_both+others"},
		{service.Selector{Group: "workspace_both"}, "workspace_both"},
		{service.Selector{Workspace: "his", Own: true}, "user_josh workspace_his"},
		{service.Selector{User: "bob"}, "user_bob(empty)"},
	} {
		var got []string
		for _, o := range run(t, m, service.Groups, tc.in).Groups {
			name := o.Group
			if o.Shared {
				name += "+others"
			}
			if o.Empty {
				name += "(empty)"
			}
			got = append(got, name)
		}
		slices.Sort(got)
		if strings.Join(got, " ") != tc.want {
			t.Errorf("%+v: %q, want %q", tc.in, got, tc.want)
		}
	}
	var texts []string
	for _, group := range []string{"user_josh", "workspace_both"} {
		for _, r := range export(t, m, service.Selector{Group: group}) {
			texts = append(texts, fmt.Sprintf("%s(%s) %s %s: %s", r.Scope, r.Workspace, r.User, r.Role, r.Text))
		}
	}
	for _, want := range []string{"user()  user: I like tea.", "workspace(both)", "user: We use Postgres here.", "assistant: I see."} {
		if !strings.Contains(strings.Join(texts, "\n"), want) {
			t.Errorf("%q is missing in %q", want, texts)
		}
	}
	if own := run(t, m, service.Show, service.ShowRequest{Selector: service.Selector{Workspace: "his", Own: true}, Last: 3}); len(own.Messages) != 3 || own.Messages[2].Scope != "user" || own.Messages[0].Scope != "workspace" {
		t.Errorf("a project's, and the person's own: %+v", own.Messages)
	}
}

// TestCredentialsAreTenants checks that in multi mode a credential lists only its own
// memory, that the id of a session needs a credential, and that forgetting a session leaves
// the session of another credential with the same id.
func TestCredentialsAreTenants(t *testing.T) {
	m := servicetest.Open(t, t.TempDir(), servicetest.Options{Multi: true})
	one, other := service.Selector{Credential: "sha256:" + strings.Repeat("1a", 32)}, service.Selector{Credential: "sha256:" + strings.Repeat("2b", 32)}
	for text, s := range map[string]service.Selector{"We use Postgres.": one, "We use Redis.": other} {
		s.Session, s.Workspace = "s1", widgets
		run(t, m, service.Import, service.ImportRequest{Selector: s, Lines: []service.Line{{Scope: "workspace", Role: "user", Content: text}}})
	}
	m.Settle(t)
	list := run(t, m, service.List, service.ListRequest{Selector: one, Limit: 50})
	if len(list.Memories) != 1 || list.Memories[0].Name != "acme/widgets" || strings.Contains(fmt.Sprint(list), "Redis") {
		t.Errorf("the one lists %+v", list)
	}
	if _, err := service.Groups.Run(t.Context(), m.Host, &service.Selector{Session: "s1"}); err == nil || !strings.Contains(err.Error(), "credential") {
		t.Errorf("a session of nobody: %v, want that it asks for a credential", err)
	}
	in := func(s service.Selector) (parts []ledger.Owned) {
		s.Session = "s1"
		return run(t, m, service.Groups, s).Parts
	}
	for _, p := range in(one) {
		run(t, m, service.Forget, service.ForgetRequest{Selector: service.Selector{Group: p.Group, Session: "s1", Credential: one.Credential}})
	}
	for text, tc := range map[string]struct {
		s    service.Selector
		want int
	}{"forgotten": {one, 0}, "another's": {other, 1}} {
		n := 0
		for _, p := range in(tc.s) {
			n += len(export(t, m, service.Selector{Group: p.Group, Session: "s1", Credential: tc.s.Credential}))
		}
		if n != tc.want {
			t.Errorf("%s: %d messages of the session, want %d", text, n, tc.want)
		}
	}
}

// TestGroupsOfCredentials checks that the selector of a credential, a person or several
// credentials finds their groups, and that a credential whose text imitates them does not.
func TestGroupsOfCredentials(t *testing.T) {
	t.Parallel()
	sha := func(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text))) }
	several := []string{sha("sk-x"), sha("sk-y")}
	slices.Sort(several)
	for _, hashed := range []bool{true, false} {
		m := servicetest.Open(t, t.TempDir(), servicetest.Options{Multi: true, Hashed: hashed})
		callers := []struct {
			word     string
			selector service.Selector
			as       func(*graphiti.Who)
			spelt    string // the text of a credential that imitates the caller
		}{
			{"Zanzibar", service.Selector{Credential: "sha256:" + sha("sk-b")}, func(w *graphiti.Who) { w.SetCredentials("", sha("sk-b")) }, sha("sk-b")},
			{"Yukon", service.Selector{User: "josh"}, func(w *graphiti.Who) { w.User = "user:josh"; w.SetPerson() }, "person:user:josh"},
			{"Xanadu", service.Selector{Credential: "sha256:" + sha("sk-x") + ",sha256:" + sha("sk-y")}, func(w *graphiti.Who) { w.SetCredentials("", several...) }, strings.Join(several, " ")},
		}
		for _, by := range callers {
			who := graphiti.Who{User: "user:credential", Workspace: "w", Session: "session:old"}
			by.as(&who)
			m.Talk(t, who, "The word is "+by.word+".")
		}
		for _, by := range callers {
			s := by.selector
			s.Workspace = "w"
			if shown := run(t, m, service.Show, service.ShowRequest{Selector: s, Last: 100}).Messages; len(shown) != 2 || !strings.Contains(shown[0].Text+shown[1].Text, by.word) {
				t.Errorf("hashed %v: Show of %+v = %+v, want the message with %s and its answer", hashed, s, shown, by.word)
			}
			groups := run(t, m, service.Groups, by.selector).Groups
			theirs := ""
			for _, g := range groups {
				held := export(t, m, service.Selector{Group: g.Group})
				if len(held) == 3 && held[2].Where == "session" && strings.Contains(held[0].Text, by.word) && !g.Shared {
					theirs = g.Group
				}
			}
			if theirs == "" {
				t.Fatalf("hashed %v: Groups of %+v = %+v, want the group of %s", hashed, by.selector, groups, by.word)
			}
			isTheirs := func(o ledger.Owned) bool { return o.Group == theirs }
			if spelt := run(t, m, service.Groups, service.Selector{Credential: "sha256:" + sha(by.spelt), Workspace: "w"}).Groups; slices.ContainsFunc(spelt, isTheirs) {
				t.Errorf("hashed %v: Groups of a credential that spells %+v = %+v, want none of %s", hashed, by.selector, spelt, theirs)
			}
			s = by.selector
			s.Session = "old"
			parts := run(t, m, service.Groups, s).Parts
			if i := slices.IndexFunc(parts, isTheirs); i < 0 || parts[i].Shared {
				t.Errorf("hashed %v: Parts of %+v = %+v, want one in %s", hashed, s, parts, theirs)
			}
			s.Group = theirs
			run(t, m, service.Forget, service.ForgetRequest{Selector: s})
			if held := export(t, m, service.Selector{Group: theirs}); len(held) > 0 {
				t.Errorf("hashed %v: %+v after its session was forgotten = %v, want nothing", hashed, s, held)
			}
		}
	}
}

// TestQueueOperations checks that queued turns can be retried, dropped and listed, and that
// only a listing with texts is audited.
func TestQueueOperations(t *testing.T) {
	spool := &deadTurns{numbers: []int64{3, 5, 8}}
	h := &service.Host{Queue: spool}
	ask := func(op service.Operation[service.Selection, service.Affected], in service.Selection) int {
		t.Helper()
		done, err := op.Run(t.Context(), h, &in)
		must(t, err)
		return done.Turns
	}
	if n := ask(service.Retry, service.Selection{Numbers: []int64{3, 4}}); n != 1 || !slices.Equal(spool.numbers, []int64{5, 8}) {
		t.Errorf("%d, %v are left", n, spool.numbers)
	}
	if n := ask(service.Drop, service.Selection{All: true}); n != 2 || len(spool.numbers) > 0 {
		t.Errorf("%d, %v are left", n, spool.numbers)
	}
	for _, tc := range []struct {
		in   service.TurnsRequest
		what string
	}{{service.TurnsRequest{Limit: 50}, ""}, {service.TurnsRequest{Limit: 50, Text: true}, "show queued turns"}} {
		out, err := service.Turns.Run(context.Background(), h, &tc.in)
		if err != nil || out.All != 2 || spool.asked.Text != tc.in.Text || spool.asked.Limit != 50 {
			t.Errorf("%+v, %v, asked %+v", out, err, spool.asked)
		}
		if e := service.Turns.Audit(&tc.in, &out); e.What != tc.what || tc.what != "" && !slices.Equal(e.Groups, []string{"g", "h"}) {
			t.Errorf("%+v", e)
		}
	}
}

// deadTurns is a queue of undelivered turns.
type deadTurns struct {
	numbers []int64
	asked   ledger.ListOptions
}

func (l *deadTurns) Turns(_ context.Context, o ledger.ListOptions) ([]ledger.Item, int, error) {
	l.asked = o
	return []ledger.Item{{Group: "g"}, {Group: "h"}, {Group: "g"}}, 2, nil
}

func (*deadTurns) Send(time.Time) (int, error) { return 0, nil }

func (l *deadTurns) Retry(numbers []int64) (int, error) { return l.Drop(numbers) }

func (l *deadTurns) Drop(numbers []int64) (int, error) {
	before := len(l.numbers)
	l.numbers = slices.DeleteFunc(l.numbers, func(n int64) bool { return numbers == nil || slices.Contains(numbers, n) })
	return before - len(l.numbers), nil
}
