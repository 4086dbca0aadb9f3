package mcpserver_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/internal/helptest"
	"github.com/graphiti-proxy/graphiti-proxy/internal/mcpserver"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
	"github.com/graphiti-proxy/graphiti-proxy/internal/servicetest"
)

var must = helptest.Must

const (
	here  = "/work/widgets"
	there = "/work/gadgets"
)

// client is a connected client with a memory of its own.
type client struct {
	*mcp.ClientSession
	t      *testing.T
	memory *servicetest.Fixture
	asked  []string // questions to the person
}

// connect connects a client with roots. The person's answer to each question is answer; ""
// means that the client cannot ask.
func connect(t *testing.T, answer string, roots ...string) *client {
	t.Helper()
	m := servicetest.Open(t, t.TempDir(), servicetest.Options{})
	t.Cleanup(m.Close)
	c := &client{t: t, memory: m}
	srv := mcpserver.New(mcpserver.Options{
		Call: func(ctx context.Context, op service.Mountable, in any) (any, error) {
			out, _, err := service.Run(ctx, op, m.Host, service.Operator, in)
			return out, err
		},
		Project: func(dir string) (string, error) {
			if dir != here && dir != there {
				return "", errors.New("excluded from memory")
			}
			return graphiti.PathPrefix + dir, nil
		},
		Log: slog.New(slog.DiscardHandler),
	})
	o := &mcp.ClientOptions{}
	if answer != "" {
		o.ElicitationHandler = func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			c.asked = append(c.asked, r.Params.Message)
			return &mcp.ElicitResult{Action: answer}, nil
		}
	}
	program := mcp.NewClient(&mcp.Implementation{Name: "a-client"}, o)
	for _, dir := range roots {
		program.AddRoots(&mcp.Root{URI: "file://" + dir}) //nolint:staticcheck // clients still have them
	}
	one, other := mcp.NewInMemoryTransports()
	must(t, helptest.ErrorOf(srv.Connect(t.Context(), one, nil)))
	session, err := program.Connect(t.Context(), other, nil)
	must(t, err)
	t.Cleanup(func() { _ = session.Close() })
	c.ClientSession = session
	return c
}

// call calls a tool. It returns the answer as JSON, and whether it is an error.
func (c *client) call(name string, args map[string]any) (text string, failed bool) {
	c.t.Helper()
	r, err := c.CallTool(c.t.Context(), &mcp.CallToolParams{Name: name, Arguments: args})
	must(c.t, err)
	c.memory.Settle(c.t)
	return r.Content[0].(*mcp.TextContent).Text, r.IsError
}

// add adds a text, and returns the ids of its message and its pending line.
func (c *client) add(text string) (uuid, pending string) {
	c.t.Helper()
	said, failed := c.call("add_memory", map[string]any{"episode_body": text, "group_id": "unknown arguments are ignored"})
	var ids struct {
		UUID    string `json:"uuid"`
		Pending string `json:"pending_id"`
	}
	if err := json.Unmarshal([]byte(said), &ids); err != nil || failed {
		c.t.Fatalf("add_memory(%q) = %s, want ids", text, said)
	}
	return ids.UUID, ids.Pending
}

const (
	note = "The staging server of the widgets moved to Bergen."
	ask  = "Where is the staging server of the widgets?"
)

// TestNotes: a note is found in its project, as the model's text, and deleted by its id.
func TestNotes(t *testing.T) {
	t.Parallel()
	c := connect(t, "", here)
	uuid, _ := c.add(note)
	for tool, args := range map[string]map[string]any{"search_memory_facts": {"query": ask}, "get_episodes": {"max_episodes": 5}} {
		if said, failed := c.call(tool, args); failed || !strings.Contains(said, uuid) || !strings.Contains(said, "assistant") {
			t.Errorf("%s: got %s, want the note %s of the assistant", tool, said, uuid)
		}
	}
	if said, failed := c.call("delete_episode", map[string]any{"uuid": uuid}); failed {
		t.Errorf("delete_episode: got %s, want success", said)
	}
	if said, _ := c.call("get_episodes", nil); strings.Contains(said, "Bergen") {
		t.Errorf("get_episodes: got %s, want no deleted note", said)
	}
}

// TestContainment: outside of its project, a note has no effect until the person confirms it.
func TestContainment(t *testing.T) {
	t.Parallel()
	for _, roots := range [][]string{{here}, nil} {
		c := connect(t, "accept", roots...)
		_, pending := c.add(note)
		elsewhere := func() bool {
			out, err := c.memory.Memory.Search(t.Context(), &service.SearchRequest{Selector: service.Selector{User: servicetest.Owner}, Query: ask})
			must(t, err)
			return len(out.Facts) > 0
		}
		if elsewhere() {
			t.Errorf("roots %q: got the note in the person's own memory, want none", roots)
		}
		if said, failed := c.call("confirm_memory", map[string]any{"ids": []string{pending}}); failed || !strings.Contains(said, `"confirmed"`) {
			t.Errorf("roots %q: confirm_memory = %s, want a confirmed line", roots, said)
		}
		if len(c.asked) != 1 || !strings.Contains(c.asked[0], note) {
			t.Errorf("roots %q: got the questions %q, want one with the text", roots, c.asked)
		}
		if len(roots) == 0 && !elsewhere() {
			t.Errorf("got no confirmed note in the person's own memory, want it")
		}
	}
}

// TestConfirmation: only the person's answer confirms a text.
func TestConfirmation(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]string{"": "cannot ask the user", "decline": "did not confirm", "cancel": "did not confirm"} {
		c := connect(t, answer, here)
		_, pending := c.add(note)
		if said, failed := c.call("confirm_memory", map[string]any{"ids": []string{pending}}); !failed || !strings.Contains(said, want) {
			t.Errorf("answer %q: got %s, want an error with %q", answer, said, want)
		}
		if said, failed := c.call("confirm_memory", map[string]any{"ids": []string{"all"}}); !failed {
			t.Errorf("answer %q: ids all: got %s, want an error", answer, said)
		}
		if said, _ := c.call("confirm_memory", nil); !strings.Contains(said, pending) {
			t.Errorf("answer %q: got %s, want the line %s to be pending", answer, said, pending)
		}
	}
}

// TestRejectedNote: a model cannot bring back a text that the person rejected.
func TestRejectedNote(t *testing.T) {
	t.Parallel()
	c := connect(t, "", here)
	_, pending := c.add(note)
	if _, err := c.memory.Memory.Settle(t.Context(), &service.SettleRequest{Reject: []string{pending}}); err != nil {
		t.Fatal(err)
	}
	if said, _ := c.call("add_memory", map[string]any{"episode_body": note}); !strings.Contains(said, "rejected") {
		t.Errorf("got %s, want that the text is rejected", said)
	}
	if said, _ := c.call("confirm_memory", nil); strings.Contains(said, pending) {
		t.Errorf("got %s, want no pending text", said)
	}
}

// TestRefusals: errors are answers of the tool.
func TestRefusals(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, tool, want string
		args             map[string]any
		roots            []string
	}{
		{"excluded project", "get_episodes", "excluded", nil, []string{"/secret"}},
		{"two projects", "get_episodes", "several projects", nil, []string{here, there}},
		{"remote root", "get_episodes", "no directory of this machine", nil, []string{"host.example/x"}},
		{"no query", "search_memory_facts", "query", map[string]any{"query": " "}, []string{here}},
		{"no names", "search_nodes", "query", map[string]any{"query": ""}, []string{here}},
		{"credential", "add_memory", "credential", map[string]any{"episode_body": "the key is sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGH"}, []string{here}},
		{"too long", "add_memory", "characters", map[string]any{"episode_body": strings.Repeat("word ", 4000)}, []string{here}},
		{"unknown message", "delete_episode", "no message", map[string]any{"uuid": "0123456789ab"}, []string{here}},
		{"no message", "delete_episode", "uuid: is empty", map[string]any{"uuid": ""}, []string{here}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			c := connect(t, "accept", tc.roots...)
			if said, failed := c.call(tc.tool, tc.args); !failed || !strings.Contains(said, tc.want) {
				t.Errorf("%s(%v) = %s, want an error with %q", tc.tool, tc.args, said, tc.want)
			}
		})
	}
}

// TestArguments: models write numbers as texts, and null for an option. Clients refuse tools with
// names and schemas beyond their rules.
func TestArguments(t *testing.T) {
	t.Parallel()
	c := connect(t, "", here)
	for _, text := range []string{note, "The staging server of the widgets has two disks."} {
		c.add(text)
	}
	for _, tc := range []struct {
		last any
		want int // episodes; 0 is an error
	}{{1, 1}, {"1", 1}, {1.0, 1}, {nil, 2}, {"null", 2}, {"one", 0}, {[]int{1}, 0}} {
		said, failed := c.call("get_episodes", map[string]any{"last_n": tc.last})
		if got := strings.Count(said, "valid_at"); failed != (tc.want == 0) || !failed && got != tc.want {
			t.Errorf("last_n %v: got %s, want %d episodes", tc.last, said, tc.want)
		}
	}
	tools, err := c.ListTools(t.Context(), nil)
	must(t, err)
	for _, tool := range tools.Tools {
		schema, _ := tool.InputSchema.(map[string]any)
		properties, _ := schema["properties"].(map[string]any)
		if schema["type"] != "object" || properties == nil || len(schema) > 3 { // and required: OpenAI and Claude refuse anyOf
			t.Errorf("%s: got the schema %v, want an object with properties", tool.Name, schema)
		}
		if !regexp.MustCompile(`^[a-z_]{1,40}$`).MatchString(tool.Name) { // Cursor counts 60 with the server's name
			t.Errorf("got the name %q, want at most 40 letters", tool.Name)
		}
		for name, of := range properties {
			p, _ := of.(map[string]any)
			kind, plain := p["type"].(string) // Gemini refuses lists of types
			items, _ := p["items"].(map[string]any)
			if !plain || kind == "array" && items["type"] == nil { // VS Code refuses arrays without items
				t.Errorf("%s: got %s as %v, want one type, and items of an array", tool.Name, name, p)
			}
		}
	}
}

// TestLongEpisodes: answers have a bound, the newest episodes come first, and the time of the
// earlier ones leads to all others.
func TestLongEpisodes(t *testing.T) {
	t.Parallel()
	c := connect(t, "", here)
	const stored = 24
	for i := range stored {
		c.add(fmt.Sprintf("Note %d. %s", i, strings.Repeat("Bergen has much rain. ", 320)))
	}
	var seen []string
	for before, calls := "", 0; ; calls++ {
		said, failed := c.call("get_episodes", map[string]any{"last_n": 100, "before": before})
		var page struct {
			Episodes []struct{ Content string }
			Earlier  string
		}
		if err := json.Unmarshal([]byte(said), &page); err != nil || failed || len(said) > 60_000 || calls > stored {
			t.Fatalf("got %d characters, %v, %.200s; want at most 60,000", len(said), err, said)
		}
		for _, e := range page.Episodes {
			if n := strings.Fields(e.Content)[1]; !slices.Contains(seen, n) { // a page may repeat the last one's moment
				seen = append(seen, n)
			}
		}
		if before = page.Earlier; before == "" {
			break
		}
	}
	if len(seen) != stored || seen[0] != fmt.Sprint(stored-1, ".") || seen[stored-1] != "0." {
		t.Errorf("got the notes %q, want all %d, newest first", seen, stored)
	}
}

// TestSearchNodes checks that words of a query with a capital letter or a digit, and those in
// scripts without case, are names with their capitalized neighbors.
func TestSearchNodes(t *testing.T) {
	t.Parallel()
	c := connect(t, "", here)
	for _, text := range []string{"We run Kubernetes in Bergen.", "In Bergen we have Grafana too.", "We will replace Kubernetes and Grafana."} {
		c.add(text)
	}
	if said, failed := c.call("search_nodes", map[string]any{"query": "what runs kubernetes"}); failed || !strings.Contains(said, "Kubernetes") || strings.Contains(said, "Grafana") {
		t.Errorf("got %s, want the node Kubernetes alone", said)
	}
	for _, text := range []string{
		"Yesterday I met Miriam Weber, who runs the database of acme/widgets.", "The database is slow, says Miriam Weber.", "I asked whether Oskar likes getUserById in state.db.", "我们的数据库很慢。",
	} {
		c.add(text)
	}
	for query, want := range map[string]string{
		"who is miriam?": `"Miriam Weber"`, "Weber": `"count":2`, "getUserById": `"getUserById"`, "the database": "no nodes found", "数据库": "我们的数据库很慢", "Berlin": "no nodes found",
	} {
		if said, failed := c.call("search_nodes", map[string]any{"query": query}); failed || !strings.Contains(said, want) {
			t.Errorf("%q: got %s, want %s", query, said, want)
		}
	}
	if said, failed := c.call("get_status", nil); failed || !strings.Contains(said, "ok") {
		t.Errorf("get_status = %s, want ok", said)
	}
}
