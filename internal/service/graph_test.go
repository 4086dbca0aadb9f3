package service_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
	"github.com/graphiti-proxy/graphiti-proxy/internal/servicetest"
)

// imports stores a person's texts, a minute apart.
func imports(t testing.TB, m *servicetest.Fixture, s service.Selector, texts ...string) {
	t.Helper()
	var lines []service.Line
	for i, text := range texts {
		lines = append(lines, service.Line{Scope: "user", Role: "user", Content: text, Timestamp: time.Date(2026, 11, 1, 9, i, 0, 0, time.UTC).Format(time.RFC3339)})
	}
	if _, err := m.Memory.Import(t.Context(), &service.ImportRequest{Selector: s, Lines: lines}); err != nil {
		t.Fatal(err)
	}
	m.Settle(t)
}

// TestMentionedTogether checks that names within sentences, identifiers, and rare terms of
// scripts without capital letters are nodes if two messages mention them, unlike numbers,
// hashes and words that only begin sentences. An edge quotes the newest message with both
// names.
func TestMentionedTogether(t *testing.T) {
	m := servicetest.Open(t, t.TempDir(), servicetest.Options{})
	imports(t, m, service.Selector{},
		"Yesterday I met Miriam Weber, who runs the database of acme/widgets.",
		"The database is slow, says Miriam Weber. Release 20 of acme/widgets waits.",
		"Yesterday was fine. I asked whether Miriam Weber likes getUserById in state.db.",
		"The function getUserById reads state.db, and 7d287df1d3c1 mended it.",
		"The commit 7d287df1d3c1 is of Berlin.",
		"我们的数据库很慢。", "数据库在柏林。", "ミソはわたしの猫です。", "猫のミソは元気です。",
		"Наш сервер в Твери медленный.", "Сервер в Твери обновили.",
	)
	g := run(t, m, service.Connections, service.GraphRequest{Limit: 60})
	nodes, ids := make(map[string]int), make(map[string]string)
	for _, n := range g.Nodes {
		nodes[n.Name], ids[n.ID] = n.Count, n.Name
	}
	for name, want := range map[string]int{"Miriam Weber": 3, "acme/widgets": 2, "getUserById": 2, "state.db": 2, "数据库": 2, "ミソ": 0, "Твери": 2, "Yesterday": 0, "The": 0, "database": 0, "7d287df1d3c1": 0, "Berlin": 0} {
		if nodes[name] != want {
			t.Errorf("%s: %d messages, want %d; %v", name, nodes[name], want, nodes)
		}
	}
	found := ""
	for _, e := range g.Edges {
		found += fmt.Sprintf("%s, %s: %d %.20s %s\n", ids[e.From], ids[e.To], e.Count, e.Says, e.Since)
		if e.ID == "" || ids[e.From] == "" || ids[e.To] == "" {
			t.Errorf("%+v", e)
		}
	}
	for _, want := range []string{"acme/widgets, Miriam Weber: 2 The database is slow 2026-11-01T09:01:00Z", "getUserById, state.db: 2 The function getUser"} {
		if !strings.Contains(found, want) {
			t.Errorf("%q is missing in\n%s", want, found)
		}
	}
	if g.Note != "" || len(g.Groups) == 0 || g.Nodes[0].Name != "Miriam Weber" && g.Nodes[0].Name != "getUserById" && g.Nodes[0].Name != "state.db" {
		t.Errorf("note %q, groups %v, first %+v", g.Note, g.Groups, g.Nodes[0])
	}
	if small := run(t, m, service.Connections, service.GraphRequest{Limit: 2}); len(small.Nodes) != 2 || len(small.Edges) > 6 {
		t.Errorf("%d nodes, %d edges", len(small.Nodes), len(small.Edges))
	}
	if nobody := run(t, m, service.Connections, service.GraphRequest{Selector: service.Selector{User: "ann"}, Limit: 2}); len(nobody.Nodes)+len(nobody.Edges) != 0 || nobody.Nodes == nil {
		t.Errorf("another's: %+v", nobody)
	}
	if _, _, err := call(t, m, "memory/graph", `{"limit":0}`); err == nil {
		t.Error("a limit of 0 is taken")
	}
}

// TestGraphOfGraphiti checks that facts connect entities and have a state. Over MCP
// entities have names, over REST the words of their facts.
func TestGraphOfGraphiti(t *testing.T) {
	memories(t, func(t *testing.T, m *servicetest.Fixture, settle func()) {
		if strings.HasSuffix(t.Name(), "embedded") {
			t.Skip("it has no facts")
		}
		add(t, m, settle, turn(strings.Repeat("a", 32), "s", "My cat is called Miso.", "I see."))
		g := run(t, m, service.Connections, service.GraphRequest{Limit: 60})
		if len(g.Nodes) < 2 || len(g.Edges) == 0 || g.Edges[0].State != service.Valid || !strings.Contains(g.Edges[0].Says, "Miso") || !strings.Contains(g.Note, "cannot list facts") {
			t.Fatalf("%+v", g)
		}
		named := 0
		for _, n := range g.Nodes {
			if n.Name == "" || n.Count == 0 {
				t.Errorf("%+v", n)
			}
			if n.Name == "Somebody" {
				named++
			}
		}
		if mcp := strings.Contains(t.Name(), "mcp"); mcp != (named > 0) {
			t.Errorf("%d entities have the name that the server gives them", named)
		}
	})
}

// BenchmarkConnections builds the graph of the newest among many messages.
func BenchmarkConnections(b *testing.B) {
	m := servicetest.Open(b, b.TempDir(), servicetest.Options{})
	for from := 0; from < 6000; from += 1000 {
		var texts []string
		for i := from; i < from+1000; i++ {
			texts = append(texts, fmt.Sprintf("In message %d we say that Person%d Weber runs the database of acme/project%d on otter%d. ", i, i%211, i%97, i%13)+strings.Repeat("It goes on about Berlin and other things that nobody has to know. ", 5))
		}
		imports(b, m, service.Selector{}, texts...)
	}
	for b.Loop() {
		if _, err := service.Connections.Run(b.Context(), m.Host, &service.GraphRequest{Limit: 60}); err != nil {
			b.Fatal(err)
		}
	}
}

// TestConnections_OfFacts checks that a distilled fact connects the names in it, with its
// validity and the id of its message.
func TestConnections_OfFacts(t *testing.T) {
	m := servicetest.Open(t, t.TempDir(), servicetest.Options{})
	name := graphiti.EpisodeName(strings.Repeat("1", 32), graphiti.RoleUser)
	fact, err := json.Marshal(graphiti.Distilled{
		Role: graphiti.RoleUser, Kind: "person", Sources: []string{name},
		Since: time.Date(2026, 11, 1, 9, 0, 0, 0, time.UTC), Until: time.Date(2026, 11, 2, 9, 0, 0, 0, time.UTC),
	})
	if err != nil {
		t.Fatal(err)
	}
	lines := []service.Line{
		{Scope: "user", Where: "memory", Role: "user", Episode: name, Content: "So she, Miriam Weber, has the keys. I mean those of the Corn Hall.", Timestamp: "2026-11-01T09:00:00Z"},
		{Scope: "user", Where: "fact", Role: "user", Episode: "graphiti-proxy.fact.1", Content: "The keys of the Corn Hall are with Miriam Weber", Source: string(fact)},
	}
	if _, err := m.Memory.Import(t.Context(), &service.ImportRequest{Lines: lines}); err != nil {
		t.Fatal(err)
	}
	g := run(t, m, service.Connections, service.GraphRequest{Limit: 60})
	if len(g.Edges) != 1 || g.Edges[0].Says != lines[1].Content || g.Edges[0].State != service.Superseded || g.Edges[0].Until != "2026-11-02T09:00:00Z" || g.Edges[0].ID != graphiti.MessageID(name) {
		t.Errorf("got nodes %+v and edges %+v, want one edge with the fact", g.Nodes, g.Edges)
	}
}
