package service_test

import (
	"strings"
	"testing"
	"time"

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

// TestEntities_Names checks that words of a query with a capital letter or a digit, and those in
// scripts without case, are names with their capitalized neighbors.
func TestEntities_Names(t *testing.T) {
	m := servicetest.Open(t, t.TempDir(), servicetest.Options{})
	imports(t, m, service.Selector{},
		"Yesterday I met Miriam Weber, who runs the database of acme/widgets.",
		"The database is slow, says Miriam Weber. Release 20 of acme/widgets waits.",
		"I asked whether Miriam Weber likes getUserById in state.db.",
		"我们的数据库很慢。",
	)
	for _, tc := range []struct {
		query, name string // the best entity, or "" for none
		count       int
	}{
		{"who is miriam?", "Miriam Weber", 3},
		{"Weber", "Miriam Weber", 3},
		{"getUserById", "getUserById", 1},
		{"the database", "", 0},
		{"数据库", "我们的数据库很慢", 1},
		{"Berlin", "", 0},
	} {
		got := run(t, m, service.Entities, service.EntitiesRequest{Query: tc.query, Limit: 10})
		if tc.name == "" {
			if len(got.Entities) != 0 || got.Entities == nil {
				t.Errorf("%q: got %+v, want none", tc.query, got.Entities)
			}
			continue
		}
		if len(got.Entities) != 1 || got.Entities[0].Name != tc.name || got.Entities[0].Count != tc.count || !strings.Contains(got.Entities[0].Summary, tc.name) {
			t.Errorf("%q: got %+v, want %s of %d messages", tc.query, got.Entities, tc.name, tc.count)
		}
	}
	if other := run(t, m, service.Entities, service.EntitiesRequest{Selector: service.Selector{User: "ann"}, Query: "Miriam", Limit: 10}); len(other.Entities) != 0 {
		t.Errorf("another person's: %+v", other)
	}
	for _, in := range []string{`{"query":"Miriam","limit":0}`, `{"query":" "}`} {
		if _, _, err := call(t, m, "memory/entities", in); err == nil {
			t.Errorf("%s is accepted", in)
		}
	}
}

// TestEntities_OfGraphiti checks that every backend has the names of stored messages.
func TestEntities_OfGraphiti(t *testing.T) {
	memories(t, func(t *testing.T, m *servicetest.Fixture, settle func()) {
		add(t, m, settle, turn(strings.Repeat("a", 32), "s", "My cat is called Miso.", "I see."))
		got := run(t, m, service.Entities, service.EntitiesRequest{Query: "Miso", Limit: 10})
		if len(got.Entities) == 0 || got.Entities[0].Name != "Miso" || !strings.Contains(got.Entities[0].Summary, "Miso") {
			t.Errorf("got %+v, want Miso", got.Entities)
		}
	})
}
