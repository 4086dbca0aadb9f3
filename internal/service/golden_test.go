package service_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
	"github.com/graphiti-proxy/graphiti-proxy/internal/servicetest"
)

var update = flag.Bool("update", false, "record the answers of operations")

// goldenCases are inputs of operations. "_" is replaced by a selector.
var goldenCases = []struct{ op, in string }{
	{"memory/show", `{_}`},
	{"memory/show", `{_"last":7}`},
	{"memory/show", `{_"last":3,"before":"2026-01-02T03:15:00Z"}`},
	{"memory/search", `{_"kind":"fact","state":"valid","newest":true}`},
	{"memory/search", `{_"kind":"fact","newest":true,"limit":4}`},
	{"memory/search", `{_"query":"server","all":true}`},
	{"memory/list", `{_}`},
	{"memory/list", `{_"limit":2}`},
	{"memory/stats", `{_}`},
	{"memory/groups", `{_}`},
	{"memory/conversation", `{_"hash":"` + hashOf("s1") + `"}`},
	{"memory/conversation", `{_"hash":"` + hashOf("s2") + `","limit":2,"skip":1}`},
	{"memory/conversation", `{_"message":"` + goldenID(3, graphiti.RoleAssistant) + `","limit":3}`},
	{"memory/conversation", `{_"message":"` + graphiti.MessageID("another client's") + `"}`},
	{"memory/people", `{}`},
}

var goldenSelectors = []string{
	``, `"user":"me",`, `"user":"ann",`, `"workspace":"` + widgets + `",`, `"workspace":"` + widgets + `","own":true,`, `"session":"s1",`,
	`"group":"user_josh",`, `"group":"session_s1",`, `"user":"josh","agent":"ava",`, `"group":"user_josh","session":"s1",`, `"user":"josh","session":"s1",`,
}

func goldenTurn(i int) string { return fmt.Sprintf("%032x", 0xabc0000+i) }

func goldenID(i int, role graphiti.RoleType) string {
	return graphiti.MessageID(graphiti.EpisodeName(goldenTurn(i), role))
}

// goldenNow is the time of the recorded answers, which state the ages of facts.
var goldenNow = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

// goldenCorpus returns turns of two people, in a project and outside of projects, in the
// groups of an agent and a session, of every kind, some with equal times, and not in order
// of time.
func goldenCorpus() (list []ledger.Turn) {
	start := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	group := func(scope graphiti.Scope, id string) []graphiti.Target {
		return []graphiti.Target{{Scope: scope, Group: id}}
	}
	raw := graphiti.Namer{Raw: true}
	project, _ := raw.Group(graphiti.ScopeWorkspace, graphiti.Who{User: servicetest.Owner, Workspace: widgets})
	says := []string{
		"I use the server otter for Widgets.", "I use the server  otter for Widgets.", "Which server does Miriam Weber use?", "Thanks!",
		"Miriam Weber moved the server to Oslo in May.", "אני גר בתל אביב עם חתול.", strings.Repeat("The server of Miriam Weber needs more memory. ", 210), "My cat is called Miso.",
	}
	for i := range 16 {
		t := ledger.Turn{
			ID: goldenTurn(i), Session: fmt.Sprintf("session:s%d", 1+i%3), Owner: servicetest.Owner, User: says[i%len(says)], Assistant: fmt.Sprintf("Noted, number %d.", i),
			Said: start.Add(time.Duration(i*7%16/2) * 5 * time.Minute), Targets: group(graphiti.ScopeUser, servicetest.OwnersGroup), Client: "codex",
		}
		t.Answered = t.Said.Add(time.Duration(i%2) * time.Second)
		switch {
		case i%4 == 1:
			t.Workspace, t.Targets = widgets, append(group(graphiti.ScopeWorkspace, project), t.Targets...)
		case i == 6:
			t.Owner, t.Targets = "user:ann", group(graphiti.ScopeUser, "user_ann")
		case i == 10:
			t.Owner, t.Workspace, t.Targets = "user:ann", widgets, group(graphiti.ScopeWorkspace, project)
		case i == 12:
			t.Targets = group(graphiti.ScopeAgent, "agent_ava__user_josh")
		case i == 3 || i == 14:
			t.Session, t.Targets = "session:s1", group(graphiti.ScopeSession, "session_s1")
		}
		list = append(list, t)
	}
	for i, kind := range graphiti.Kinds {
		list = append(list, ledger.Turn{
			ID: goldenTurn(100 + i), Owner: servicetest.Owner, Kind: kind, User: "The " + kind + " about the server is kept.", Said: start.Add(time.Duration(i) * time.Minute),
			Answered: start.Add(time.Duration(i) * time.Minute), Targets: group(graphiti.ScopeUser, servicetest.OwnersGroup), Standalone: true,
		})
	}
	restored := func(id, name, text, source string) {
		list = append(list, ledger.Turn{
			ID: id, Owner: servicetest.Owner, User: text, Said: start.Add(time.Minute), Answered: start.Add(time.Minute), Standalone: true,
			Targets: group(graphiti.ScopeUser, servicetest.OwnersGroup), Restored: []ledger.Restored{{Name: name, Speaker: "Jo", Role: graphiti.RoleUser, Source: source}},
		})
	}
	restored(goldenTurn(200), "another client's", "I work at Acme.", "none")
	question := "Where is the server of Widgets?"
	restored(goldenTurn(201), graphiti.EpisodeName(goldenTurn(202), graphiti.RoleUser), question+graphiti.SideMark("Jo", graphiti.RoleAssistant)+"In Oslo.",
		fmt.Sprintf(`{"session":%q,"parts":[[%d]]}`, hashOf("s2"), len(question)))
	return list
}

// TestGolden compares the answers of operations with recorded digests. They are equal with and
// without Graphiti, apart from its facts. Flag -update records
// them. With -v the test prints each answer.
func TestGolden(t *testing.T) {
	t.Parallel()
	for _, multi := range []bool{false, true} {
		for _, kind := range []string{"embedded", "graphiti", "graphiti-mcp"} {
			t.Run(fmt.Sprintf("%s-multi=%t", kind, multi), func(t *testing.T) {
				t.Parallel()
				o := servicetest.Options{Multi: multi, Now: func() time.Time { return goldenNow }}
				settle := func() {}
				if kind != "embedded" {
					g := startGraphiti(t, kind)
					o.Graph, o.Bare = memoryOf(t, kind, g), true
					settle = func() {
						must(t, g.Settle(t.Context()))
					}
				}
				m := servicetest.Open(t, t.TempDir(), o)
				golden(t, m, kind, multi, func() { m.Settle(t); settle() })
			})
		}
	}
}

func golden(t *testing.T, m *servicetest.Fixture, kind string, multi bool, settle func()) {
	for _, one := range goldenCorpus() {
		add(t, m, settle, one)
	}
	var out bytes.Buffer
	people := []service.Caller{service.Operator}
	if multi {
		people = append(people, service.Caller{Name: "josh", Own: service.Selector{User: servicetest.Owner}})
	}
	record := func(cases []struct{ op, in string }, selectors []string) {
		for _, c := range cases {
			for i, s := range selectors {
				if i > 0 && !strings.Contains(c.in, "_") {
					break
				}
				for _, who := range people {
					in := strings.Replace(strings.Replace(c.in, "{_}", "{"+strings.TrimSuffix(s, ",")+"}", 1), "{_", "{"+s, 1)
					fmt.Fprintf(&out, "%s %s %s %s\n", who.Name, c.op, in, goldenAnswer(t, m, who, c.op, in))
				}
			}
		}
	}
	record(goldenCases, goldenSelectors)
	for _, in := range []string{`{"group":"user_josh"}`, `{"group":"session_s1"}`, `{"group":"user_josh","session":"s1","user":"josh"}`, `{"group":"agent_ava__user_josh"}`} {
		record([]struct{ op, in string }{{"memory/export", in}}, []string{""})
	}
	path := filepath.Join("testdata", "golden", fmt.Sprintf("multi=%t.txt", multi)) // equal for all memories
	if *update && kind == "embedded" {
		must(t, os.WriteFile(path, out.Bytes(), 0o600))
	}
	want, err := os.ReadFile(path)
	must(t, err)
	wanted := strings.Split(string(want), "\n")
	for i, line := range strings.Split(out.String(), "\n") {
		if i >= len(wanted) || line != wanted[i] {
			t.Errorf("line %d: got %s, want %s", i+1, line, wanted[min(i, len(wanted)-1)])
		}
	}
}

// changing matches the parts of answers that differ between runs: UUIDs, and times after
// January 2026, which the corpus does not contain.
var changing = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}|20(2[7-9]|[3-9]\d)-\d\d-\d\d(T[0-9:.]+Z)?|2026-(0[2-9]|1\d)-\d\d(T[0-9:.]+Z)?`)

// signatures matches the signatures of exported texts. They differ between runs if the times do.
var signatures = regexp.MustCompile(`"signed":"[0-9a-f]{64}"`)

// goldenAnswer returns the digest of an answer.
func goldenAnswer(t *testing.T, m *servicetest.Fixture, who service.Caller, op, in string) string {
	t.Helper()
	out, err := answerOf(t, m, who, op, in)
	b, _ := json.Marshal(out)
	if err != nil {
		b = fmt.Appendf(nil, "error: %v", err)
	}
	b = changing.ReplaceAll(b, []byte("…"))
	if bytes.Contains(b, []byte(`"time":"…"`)) {
		b = signatures.ReplaceAll(b, []byte(`"signed":"…"`))
	}
	if testing.Verbose() {
		fmt.Printf("%s %s %s %s\n%s\n", t.Name(), who.Name, op, in, b)
	}
	return fmt.Sprintf("%x", sha256.Sum256(b))[:16]
}

// answerOf calls an operation for a caller and returns its answer.
func answerOf(t *testing.T, m *servicetest.Fixture, who service.Caller, name, in string) (any, error) {
	t.Helper()
	for _, op := range service.Operations() {
		if s, _, _, _ := op.Describe(); s.Name != name {
			continue
		}
		var many []any
		out, _, err := op.Call(t.Context(), m.Host, who, func(v any) error { return json.Unmarshal([]byte(in), v) },
			func(one any) error { many = append(many, one); return nil })
		if many != nil {
			return many, err
		}
		return out, err
	}
	t.Fatalf("there is no operation %s", name)
	return nil, nil
}
