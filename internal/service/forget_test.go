package service_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture/standing"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/graphititest"
	"github.com/graphiti-proxy/graphiti-proxy/inject"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
	"github.com/graphiti-proxy/graphiti-proxy/internal/servicetest"
)

// forgetSession forgets a conversation in all groups.
func forgetSession(t *testing.T, m *servicetest.Fixture, session string) (done []service.Forgotten) {
	t.Helper()
	found := run(t, m, service.Groups, service.Selector{Session: session})
	for _, part := range slices.Concat(found.Groups, found.Parts) {
		done = append(done, run(t, m, service.Forget, service.ForgetRequest{Selector: service.Selector{Group: part.Group, Session: session}}))
	}
	return done
}

// records returns the exported records of a selection.
func records(t *testing.T, m *servicetest.Fixture, s service.Selector) (list []service.Record) {
	t.Helper()
	found := run(t, m, service.Groups, s)
	for _, part := range slices.Concat(found.Groups, found.Parts) {
		list = append(list, export(t, m, service.Selector{Group: part.Group, Session: s.Session})...)
	}
	return list
}

// exported returns the exported texts of a selection, each prefixed with its place.
func exported(t *testing.T, m *servicetest.Fixture, s service.Selector) (list []string) {
	t.Helper()
	for _, r := range records(t, m, s) {
		list = append(list, r.Where+": "+r.Text)
	}
	return list
}

// TestForget_Session checks that Export and Forget cover the messages of a conversation in
// the person's and the project's memory, and its notes in the state. Other conversations
// stay.
func TestForget_Session(t *testing.T) {
	t.Parallel()
	m := servicetest.Open(t, t.TempDir(), servicetest.Options{})
	opens(t, m, "", "s1", "My cat is called Miso.")
	opens(t, m, "", "s2", "My dog is called Rex.")
	opens(t, m, "w", "s1", "The bird is called Bo.")
	// Another proxy wrote this: the owner of the session is unknown.
	err := m.Backend.Write(t.Context(), servicetest.OwnersGroup, []graphiti.Row{{
		Name: "elsewhere", Role: "user", Text: "My fish is called Nemo.", Said: time.Now(),
		Source: `{"session":"` + hashOf("s3") + `"}`,
	}})
	must(t, err)
	of := func(session string) []string { return exported(t, m, service.Selector{Session: session}) }
	all := of("s1")
	for _, want := range []string{"memory: My cat is called Miso.", "memory: The bird is called Bo.", "session: earlier in this session, asked: The bird is called Bo."} {
		n := 0
		for _, text := range all {
			if text == want {
				n++
			}
		}
		if n != 1 {
			t.Errorf("export of s1 = %q has %q %d times, want once", all, want, n)
		}
	}
	if text := strings.Join(all, "\n"); strings.Contains(text, "Rex") || strings.Contains(text, "Nemo") {
		t.Errorf("export of s1 = %q, want no other session", all)
	}
	if got := of("s3"); !slices.Contains(got, "memory: My fish is called Nemo.") {
		t.Errorf("export of s3 = %q, want the message of the other proxy", got)
	}
	if got := exported(t, m, service.Selector{User: "josh"}); !strings.Contains(strings.Join(got, "\n"), "asked: My dog is called Rex.") {
		t.Errorf("export of the person = %q, want the notes", got)
	}
	if done := forgetSession(t, m, "s1"); len(done) != 3 {
		t.Errorf("Forget of s1 = %+v, want three groups", done)
	}
	forgetSession(t, m, "s3")
	for _, session := range []string{"s1", "s3"} {
		if got := of(session); len(got) > 0 {
			t.Errorf("export of %s after it was forgotten = %q, want nothing", session, got)
		}
	}
	block := opens(t, m, "", "s9", "What are my cat, my dog, the bird and my fish called?")
	if strings.Contains(block, "Miso") || strings.Contains(block, "Bo.") || strings.Contains(block, "Nemo") || !strings.Contains(block, "Rex") {
		t.Errorf("block of another session = %q, want the dog only", block)
	}
	if block := opens(t, m, "", "s1", "Where were we?"); strings.Contains(block, "earlier in this session") || strings.Contains(block, "Miso") {
		t.Errorf("block of the same session = %q, want nothing of before", block)
	}
	if got := strings.Join(of("s1"), "\n"); !strings.Contains(got, "Where were we?") || strings.Contains(got, "Miso") {
		t.Errorf("export of s1 = %q, want only the messages after it was forgotten", got)
	}
}

// TestForget_NamesKept checks that Forget of a session over Graphiti reports that names and
// summaries may remain: REST cannot delete them, and MCP may keep them and report success.
func TestForget_NamesKept(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"graphiti", "graphiti-mcp"} {
		g := startGraphiti(t, kind)
		m := onGraphiti(t, kind, g)
		opens(t, m, "", "s1", "My cat is called Miso.")
		done := forgetSession(t, m, "s1")
		if !slices.ContainsFunc(done, func(f service.Forgotten) bool { return f.NamesKept }) {
			t.Errorf("%s: Forget = %+v, want names kept", kind, done)
		}
	}
}

// TestForget_AgainUntilGraphitiDeletes checks that a forgotten session can be forgotten again, with the
// same report, as long as Graphiti may have it.
func TestForget_AgainUntilGraphitiDeletes(t *testing.T) {
	t.Parallel()
	g := startGraphiti(t, "graphiti")
	m := onGraphiti(t, "graphiti", g)
	opens(t, m, "", "s1", "My cat is called Miso.")
	g.Always(graphititest.DropEpisode, graphititest.Refuse())
	for i := range 2 {
		done := forgetSession(t, m, "s1")
		if len(done) == 0 || !slices.ContainsFunc(done, func(f service.Forgotten) bool { return f.Withdrawn > 0 }) {
			t.Errorf("Forget number %d = %+v, want a part that is left in Graphiti", i+1, done)
		}
	}
}

// TestDirectives checks that, if enabled, a message of directives is promoted in its
// project, that one for the person applies there and waits, and that directives next to other
// text only wait.
func TestDirectives(t *testing.T) {
	t.Parallel()
	for _, on := range []bool{false, true} {
		m := servicetest.Open(t, t.TempDir(), servicetest.Options{})
		m.Standing.Set(standing.Config{Namer: graphiti.Namer{Raw: true}, Remember: true, Directives: on})
		for text, want := range map[string]inject.Heard{
			"Please note:\npreference (global): tabs, not spaces\ndecision: Postgres, not MySQL\nprocedure: use " + token + "\nrepo_state (agent): nobody is one": {Pending: 2, Refused: 1, Unscoped: 1},
			"decision: Redis, not Kafka\npreference (global): short answers":                                                                                      {Promoted: 2, Pending: 1},
		} {
			if !on {
				want = inject.Heard{}
			}
			if _, got := m.Talk(t, ownerIn(widgets, text), text); got != want {
				t.Errorf("directives %v: heard %+v in %q, want %+v", on, got, text, want)
			}
		}
		kept := strings.Join(exported(t, m, service.Selector{User: "josh"}), "\n")
		want := map[bool]int{true: 1}[on]
		if !strings.Contains(kept, "Redis") || strings.Count(kept, `kind="decision"`) != want || strings.Contains(kept, `kind="preference"`) || strings.Contains(kept, `kind="procedure"`) {
			t.Errorf("directives %v: kept %s, want both messages, %d decisions and nothing else promoted", on, kept, want)
		}
	}
}
