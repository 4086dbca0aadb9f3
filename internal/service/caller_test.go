package service_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/internal/helptest"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
	"github.com/graphiti-proxy/graphiti-proxy/internal/servicetest"
)

var must = helptest.Must

type fields = map[string]any

// somebody is a caller with two memories in multi mode: a personal one, and a project.
type somebody struct {
	caller service.Caller
	secret string // occurs in all of their messages, and in no other text

	self, project       string // groups
	message, ofProject  string // the ids of their messages in these groups
	before              []service.Record
	session, conversing string // the id and the hash of their conversation
}

// everybody returns three callers with equal names of conversation and project.
func everybody(t *testing.T, m *servicetest.Fixture) (josh, ann, credential *somebody) {
	t.Helper()
	josh = &somebody{caller: service.Caller{Name: "josh", Own: service.Selector{User: "user:josh"}}, secret: "Miso"}
	ann = &somebody{caller: service.Caller{Name: "ann", Own: service.Selector{User: "user:ann"}}, secret: "Rex"}
	credential = &somebody{caller: service.Caller{Name: "a credential", Own: service.Selector{Credential: "sha256:" + strings.Repeat("ab", 32)}}, secret: "Kiwi"}
	for _, who := range []*somebody{josh, ann, credential} {
		who.session, who.conversing = "main", graphiti.SessionHash("session:main")
		for _, scope := range []string{"user", "workspace"} {
			s := who.caller.Own
			s.Session, s.Workspace = who.session, "w"
			lines := []service.Line{{Scope: scope, Role: "user", Content: "My pet in " + scope + " is called " + who.secret + "."}, {Scope: scope, Role: "assistant", Content: who.secret + ", I see."}}
			must(t, helptest.ErrorOf(m.Memory.Import(t.Context(), &service.ImportRequest{Selector: s, Lines: lines})))
		}
		m.Settle(t)
		found := run(t, m, service.Groups, who.caller.Own)
		for _, o := range found.Groups {
			list := export(t, m, service.Selector{Group: o.Group})
			if len(list) != 2 || o.Shared {
				t.Fatalf("%s of %s holds %+v", o.Group, who.caller.Name, list)
			}
			who.before = append(who.before, list...)
			if o.Scope == string(graphiti.ScopeUser) {
				who.self, who.message = o.Group, graphiti.MessageID(list[0].Name)
			} else {
				who.project, who.ofProject = o.Group, graphiti.MessageID(list[0].Name)
			}
		}
		if who.self == "" || who.project == "" {
			t.Fatalf("%s has %+v", who.caller.Name, found)
		}
	}
	return josh, ann, credential
}

// inputs maps operations to the fields that they need to have an effect.
var inputs = map[string]fields{
	"queue/retry":     {"all": true},
	"queue/drop":      {"all": true},
	"queue/turns":     {"text": true},
	"memory/send":     {"since": "2026-01-31"},
	"memory/search":   {"query": "What is the pet called?", "all": true},
	"memory/promote":  {"kind": "preference", "text": "I was here."},
	"memory/correct":  {"text": "I was here."},
	"memory/import":   {"lines": []fields{{"role": "user", "content": "I was here."}}},
	"registry/accept": {"id": "josh", "keep": true},
}

// attacks returns inputs that select another caller's memory in every way that an input
// can.
func attacks(me, other *somebody) (list []fields) {
	var whose []fields // of the other caller and of the attacker
	for _, who := range []*somebody{other, me} {
		own := who.caller.Own
		for _, user := range []string{own.User, strings.TrimPrefix(own.User, "user:"), strings.ToUpper(own.User), "user:" + own.User} {
			whose = append(whose, fields{"user": user}, fields{"user": user, "credential": other.caller.Own.Credential})
		}
		whose = append(whose, fields{"credential": own.Credential}, fields{"credential": strings.ToUpper(own.Credential)}, fields{"credential": "local/" + own.Credential})
		if own.Credential != "" {
			whose = append(whose, fields{"credential": own.Credential + "," + own.Credential})
		}
	}
	whose = append(whose, fields{})
	var what []fields
	for _, group := range []string{other.self, other.project, strings.ToUpper(other.self), me.self, me.project, ""} {
		for _, more := range []fields{
			{}, {"session": other.session}, {"session": "session:" + other.session}, {"workspace": "w"}, {"workspace": "w", "own": true},
			{"workspace": "w", "session": other.session}, {"agent": "a"}, {"agent": "a|" + other.caller.Own.User}, {"scope": "workspace"},
			{"message": other.message}, {"message": other.ofProject}, {"message": other.ofProject, "workspace": "w"}, {"hash": other.conversing}, {"conversation": other.conversing},
		} {
			f := maps.Clone(more)
			f["group"] = group
			what = append(what, f)
		}
	}
	for _, w := range whose {
		for _, f := range what {
			all := maps.Clone(f)
			maps.Copy(all, w)
			maps.DeleteFunc(all, func(_ string, v any) bool { return v == "" })
			list = append(list, all)
		}
	}
	return list
}

// attempt calls an operation for a caller; ok is false if the operation does not accept a
// field of in.
func attempt(t *testing.T, m *servicetest.Fixture, op service.Mountable, c service.Caller, in fields) (said string, ok bool, err error) {
	t.Helper()
	body, err := json.Marshal(in)
	must(t, err)
	ok = true
	var many []any
	out, _, err := op.Call(t.Context(), m.Host, c, func(v any) error {
		d := json.NewDecoder(strings.NewReader(string(body)))
		d.DisallowUnknownFields()
		err := d.Decode(v)
		ok = err == nil
		return err
	}, func(one any) error { many = append(many, one); return nil })
	b, _ := json.Marshal([]any{out, many})
	return string(b) + fmt.Sprint(err), ok, err
}

// TestCallersAreSeparate checks that no operation lets a caller read, change or
// delete the memory of another caller, however the input is spelled, even though both use
// the same names. The callers are two people, and a person and a credential.
func TestCallersAreSeparate(t *testing.T) {
	t.Parallel()
	m := servicetest.Open(t, t.TempDir(), servicetest.Options{Multi: true})
	josh, ann, credential := everybody(t, m)
	for _, pair := range [][2]*somebody{{josh, ann}, {josh, credential}, {credential, josh}} {
		me, other := pair[0], pair[1]
		for _, op := range service.Operations() {
			spec, _, _, _ := op.Describe()
			tried := 0
			for _, attack := range attacks(me, other) {
				if spec.Name == "memory/forget" && attack["group"] != other.self && attack["group"] != other.project && attack["message"] == nil {
					continue // callers may forget their own memory, but later attacks need it
				}
				in := maps.Clone(attack)
				maps.Copy(in, inputs[spec.Name])
				all := []fields{in}
				if spec.Name == "memory/import" { // lines have selectors, too
					line := maps.Clone(attack)
					maps.Copy(line, fields{"role": "user", "content": "I was here."})
					all = append(all, fields{"lines": []fields{{"role": "user", "content": "I was here."}, line}})
				}
				for _, in := range all {
					said, ok, err := attempt(t, m, op, me.caller, in)
					if !ok {
						continue
					}
					tried++
					for _, who := range []*somebody{josh, ann, credential} {
						if who != me && strings.Contains(said, who.secret) {
							t.Fatalf("%s with %v tells %s what is %s's: %s", spec.Name, in, me.caller.Name, who.caller.Name, said)
						}
					}
					names := in["group"] == other.self || in["group"] == other.project || in["user"] == other.caller.Own.User && in["user"] != nil || in["credential"] == other.caller.Own.Credential && in["credential"] != nil
					if forbidden := (service.ForbiddenError{}); names && !errors.As(err, &forbidden) {
						t.Fatalf("%s with %v by %s is answered %s, want that it is forbidden", spec.Name, in, me.caller.Name, said)
					}
				}
			}
			if tried == 0 && spec.Reads == false {
				t.Errorf("%s: nothing was tried", spec.Name)
			}
		}
		m.Settle(t)
		for _, who := range []*somebody{ann, other} {
			holds(t, m, who)
		}
	}
}

// holds checks that a caller's memory still has all of its messages, and ann's memory no
// others.
func holds(t *testing.T, m *servicetest.Fixture, who *somebody) {
	t.Helper()
	var now []service.Record
	for _, o := range run(t, m, service.Groups, who.caller.Own).Groups {
		now = append(now, export(t, m, service.Selector{Group: o.Group})...)
	}
	names := func(list []service.Record) (all []string) {
		for i := range list {
			if !strings.Contains(list[i].Text, "I was here.") || who.caller.Name == "ann" { // ann does not attack
				all = append(all, list[i].Name+list[i].Text)
			}
		}
		slices.Sort(all)
		return all
	}
	before, after := names(who.before), names(now)
	for _, b := range before {
		if !slices.Contains(after, b) {
			t.Errorf("%s has lost something: %v, want %v", who.caller.Name, after, before)
		}
	}
	if who.caller.Name == "ann" && len(after) != len(before) {
		t.Errorf("somebody wrote to the memory of ann: %v", after)
	}
}

// TestPeopleHaveTheirOwn checks that callers can read, extend, correct, export and forget
// their own memory without a selector, by their name, and by their groups.
func TestPeopleHaveTheirOwn(t *testing.T) {
	for _, who := range []string{"josh", "a credential"} {
		t.Run(who, func(t *testing.T) {
			m := servicetest.Open(t, t.TempDir(), servicetest.Options{Multi: true})
			josh, _, credential := everybody(t, m)
			me := josh
			if who != "josh" {
				me = credential
			}
			for _, tc := range []struct {
				op   string
				in   fields
				says string
			}{
				{"memory/groups", fields{}, me.project},
				{"memory/show", fields{}, me.secret},
				{"memory/show", fields{"workspace": "w"}, "in workspace is called " + me.secret},
				{"memory/show", fields{"group": me.project}, "in workspace is called " + me.secret},
				{"memory/list", fields{}, me.secret},
				{"memory/search", fields{"kind": "fact"}, me.secret},
				{"memory/search", fields{"query": "What is my pet called?", "all": true}, me.secret},
				{"memory/export", fields{"group": me.self}, me.secret},
				{"memory/export", fields{"group": me.project, "session": "main"}, me.secret},
				{"memory/promote", fields{"kind": "decision", "text": "Use Postgres.", "workspace": "w"}, "w"},
				{"memory/promote", fields{"kind": "decision", "text": "Use Redis.", "group": me.project}, me.project},
				{"memory/import", fields{"lines": []fields{{"role": "user", "content": "Tea.", "workspace": "x", "scope": "workspace"}}}, `"kept":1`},
				{"memory/import", fields{"lines": []fields{{"where": "session", "name": "k", "content": "x"}}}, `"not_taken":1`},
				{"memory/correct", fields{"message": me.message, "text": "My pet is called Momo."}, me.self},
				{"memory/show", fields{}, "Momo"},
				{"memory/forget", fields{"message": me.ofProject}, me.project},
				{"memory/forget", fields{"group": me.project, "session": "main"}, me.project},
				{"memory/forget", fields{"group": me.project}, me.project},
				{"memory/forget", fields{"group": me.self}, me.self},
			} {
				i := slices.IndexFunc(service.Operations(), func(op service.Mountable) bool { s, _, _, _ := op.Describe(); return s.Name == tc.op })
				said, _, err := attempt(t, m, service.Operations()[i], me.caller, tc.in)
				if err != nil || !strings.Contains(said, tc.says) {
					t.Errorf("%s %v: %s, want %q", tc.op, tc.in, said, tc.says)
				}
				m.Settle(t)
			}
			if me == josh {
				for _, name := range []string{"josh", "user:josh"} {
					if said, _, err := attempt(t, m, service.Groups, me.caller, fields{"user": name}); err != nil {
						t.Errorf("%s: %s", name, said)
					}
				}
			}
		})
	}
}

// TestASharedGroupIsNobodysAlone checks that a person can neither read, change nor delete a
// group by its id once another person has written to it.
func TestASharedGroupIsNobodysAlone(t *testing.T) {
	m := servicetest.Open(t, t.TempDir(), servicetest.Options{Multi: true})
	josh, ann, _ := everybody(t, m)
	if _, err := m.Memory.Import(t.Context(), &service.ImportRequest{Selector: service.Selector{User: "josh", Group: ann.project}, Lines: []service.Line{{Scope: "workspace", Role: "user", Content: "Miso was here."}}}); err != nil {
		t.Fatal(err)
	}
	m.Settle(t)
	for op, in := range map[string]fields{
		"memory/show": {"group": ann.project}, "memory/export": {"group": ann.project}, "memory/forget": {"group": ann.project},
		"memory/promote": {"group": ann.project, "kind": "decision", "text": "x"},
	} {
		i := slices.IndexFunc(service.Operations(), func(o service.Mountable) bool { s, _, _, _ := o.Describe(); return s.Name == op })
		for _, who := range []*somebody{josh, ann} {
			said, _, err := attempt(t, m, service.Operations()[i], who.caller, in)
			if forbidden := (service.ForbiddenError{}); !errors.As(err, &forbidden) {
				t.Errorf("%s by %s: %s", op, who.caller.Name, said)
			}
		}
	}
	if said, _, err := attempt(t, m, service.Correct, ann.caller, fields{"message": ann.ofProject, "text": "x"}); err == nil {
		t.Errorf("a message of the group: %s", said)
	}
	if said, _, err := attempt(t, m, service.Forget, ann.caller, fields{"message": ann.message}); err != nil {
		t.Errorf("a message in a group of hers alone: %s", said)
	}
}

// TestANewOperationIsForOperators checks that only operators may call an operation whose
// input has no Selector and that has no Own function, and that callers without a memory may
// call no operation.
func TestANewOperationIsForOperators(t *testing.T) {
	type in struct{}
	ran := 0
	op := service.Operation[in, int]{Run: func(context.Context, *service.Host, *in) (int, error) { ran++; return ran, nil }}
	narrowed := op
	narrowed.Own = func(context.Context, *service.Host, *in, service.Selector) error { return nil }
	read := func(any) error { return nil }
	for _, tc := range []struct {
		op     service.Mountable
		caller service.Caller
		runs   bool
	}{
		{op, service.Operator, true},
		{op, service.Caller{Own: service.Selector{User: "user:josh"}}, false},
		{op, service.Caller{}, false},
		{narrowed, service.Caller{Own: service.Selector{User: "user:josh"}}, true},
		{narrowed, service.Caller{Name: "nobody"}, false},
	} {
		ran = 0
		_, e, err := tc.op.Call(t.Context(), &service.Host{}, tc.caller, read, nil)
		forbidden := service.ForbiddenError{}
		if (ran == 1) != tc.runs || errors.As(err, &forbidden) == tc.runs || e.What != "" {
			t.Errorf("%+v: ran %d times, %v, want that it runs: %v", tc.caller, ran, err, tc.runs)
		}
	}
}

// TestNotesOfAnothersSessionStay checks that a person's notes survive an import of another
// person under the same name, and the forgetting of a message in another person's
// conversation with the same id.
func TestNotesOfAnothersSessionStay(t *testing.T) {
	m := servicetest.Open(t, t.TempDir(), servicetest.Options{Multi: true})
	josh, ann, _ := everybody(t, m)
	hers := []byte(`{"asked":"Rex is fed.","session":"` + ann.conversing + `"}`)
	must(t, m.State.Snapshots.Save(t.Context(), "hers", hers, m.State.Generations.Now(), ann.project, graphiti.SessionScopeOf(ann.conversing, ""), graphiti.SessionScopeOf(ann.conversing, "user:ann")))
	has := func() bool {
		body, err := m.State.Snapshots.Load(t.Context(), "hers")
		must(t, err)
		return string(body) == string(hers)
	}
	said, _, err := attempt(t, m, service.Import, josh.caller, fields{"lines": []fields{
		{"role": "user", "content": "Miso purrs.", "workspace": "w", "scope": "workspace"},
		{"where": "session", "episode": "hers", "content": "Rex is josh's.", "workspace": "w", "scope": "workspace", "source": `{"session":"` + ann.conversing + `"}`},
	}})
	if err != nil || !strings.Contains(said, `"not_taken":1`) {
		t.Errorf("an import with notes: %s", said)
	}
	if said, _, err := attempt(t, m, service.Forget, josh.caller, fields{"message": josh.ofProject}); err != nil {
		t.Errorf("%s", said)
	}
	if !has() {
		t.Error("the notes of another are gone")
	}
	if _, _, err := attempt(t, m, service.Forget, ann.caller, fields{"message": ann.ofProject}); err != nil || has() {
		t.Errorf("her own stay: %v", err)
	}
}

// TestNotesComeBack checks that an import has the notes of an export, and rejects others.
func TestNotesComeBack(t *testing.T) {
	m := servicetest.Open(t, t.TempDir(), servicetest.Options{})
	const source = `{"session":"de943c1601a5","asked":"Feed Miso."}`
	for name, source := range map[string]string{"good": source, "bad": `{"session":"de943c1601a5"`} {
		_, err := m.Memory.Import(t.Context(), &service.ImportRequest{Lines: []service.Line{{Where: "session", Scope: "user", Episode: name, Content: "asked: Feed Miso.", Source: source}}})
		if body, _ := m.State.Snapshots.Load(t.Context(), name); (string(body) == source) != (name == "good") || (err == nil) != (name == "good") {
			t.Errorf("%s notes: %q, %v", name, body, err)
		}
	}
}
