package ledger

import (
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// firstEdition makes the file of a proxy of the first edition. make.py beside
// the dump says what happened to its turns.
func firstEdition(t *testing.T) string {
	t.Helper()
	dump, err := os.ReadFile(filepath.Join("..", "..", "cmd", "graphiti-proxy", "testdata", "first-edition", "spool.sql"))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "spool.db")
	db, err := sql.Open("sqlite", "file:"+path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(string(dump)); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestFirstEditionIsTakenOver with all that it holds.
func TestFirstEditionIsTakenOver(t *testing.T) {
	ctx := context.Background()
	s, err := Open(firstEdition(t))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	items, all, err := s.Items(ctx, ListOptions{Limit: 10, Text: true})
	if err != nil || all != 4 {
		t.Fatal(all, err)
	}
	const group = "graphiti_user_19d0191a4a07579538f81a3f3f84fc45"
	var got []string
	for _, i := range items {
		if i.Group != group || i.Scope != "user" || i.Since.Year() != 2026 || i.Assistant != "Noted: "+i.User {
			t.Errorf("%+v", i)
		}
		got = append(got, string(i.Condition)+": "+i.User)
	}
	want := []string{
		"dead: Please refuse this turn about fog horns.",
		"under-way: The unseen turn is about sextants.",
		"waiting: The first waiting turn is about ropes.",
		"waiting: The second waiting turn is about knots.",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !strings.Contains(items[0].Reason, "422") || items[0].Number != 4 {
		t.Errorf("%+v", items[0])
	}
	if totals, err := s.Totals(); err != nil || totals != (Totals{Delivered: 4, Verified: 4}) {
		t.Errorf("%+v %v", totals, err)
	}
	if id, err := s.Instance(); err != nil || id != "41c2735c97025b0d" {
		t.Error(id, err)
	}
	doubts := 0
	if err := s.InDoubt(func(g string, e Entry) { doubts++ }); err != nil || doubts != 1 {
		t.Errorf("%d in doubt, %v", doubts, err)
	}
	if groups, _, err := s.Retry([]int64{4}); err != nil || len(groups) != 1 {
		t.Error(groups, err)
	}
	if entries, err := s.Next(ctx, group, 10); err != nil || len(entries) != 3 || entries[0].Turn.Session != "session:s4" {
		t.Error(entries, err)
	}
	// What a client's history brings again is known.
	for name, tn := range map[string]Turn{
		"delivered":   {ID: "147af74deebf4af53ecf7227fb353af9", User: "The kept turn is about lighthouses."},
		"interrupted": {ID: "614e476095a6a8d622db5fb49cb0291b", User: "The interrupted turn is about anchors.", Assistant: "Half of an answer"},
		"waiting":     {ID: "8cffb009cdb2751ae9b97d56b3e8c655", User: "The first waiting turn is about ropes."},
		"dead":        {ID: "a84ccedba9de57df3a4741f50796441d", User: "Please refuse this turn about fog horns."},
		"in a shortened history": {
			ID: "another", User: "The first waiting turn is about ropes.", Assistant: "Noted: The first waiting turn is about ropes.",
		},
	} {
		tn.Backfill, tn.Said, tn.Targets = true, time.Now(), []graphiti.Target{{Scope: graphiti.ScopeUser, Group: group}}
		if a, err := s.Add(ctx, []Turn{tn}, time.Now()); err != nil || len(a[0].Groups) != 0 {
			t.Errorf("%s: kept again: %+v %v", name, a, err)
		}
	}
	const emptied = "graphiti_workspace_c26071d4188fcc9853a870b11e90a610"
	tn := Turn{ID: "be1b75fefc7fdeddec9981ac7379856d", User: "The forgotten turn is about compasses.", Said: time.Now(), Targets: []graphiti.Target{{Scope: graphiti.ScopeWorkspace, Group: emptied}}}
	if a, err := s.Add(ctx, []Turn{tn}, time.Now()); err != nil || len(a[0].Groups) != 0 {
		t.Errorf("what was forgotten came back: %+v %v", a, err)
	}
}

// TestFirstEditionIsLeftWhole where it cannot be taken over: nothing of it is
// lost, and the next start takes it over.
func TestFirstEditionIsLeftWhole(t *testing.T) {
	path := firstEdition(t)
	db, err := sql.Open("sqlite", "file:"+path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec("CREATE VIEW turns AS SELECT 1"); err != nil {
		t.Fatal(err)
	}
	if s, err := Open(path); err == nil {
		_ = s.Close()
		t.Fatal("it was taken over")
	}
	if _, err := db.Exec("DROP VIEW turns"); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	s, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if n, err := s.Sizes(context.Background()); err != nil || n.Pending.Turns != 3 || n.Dead.Turns != 1 {
		t.Errorf("%+v %v", n, err)
	}
}
