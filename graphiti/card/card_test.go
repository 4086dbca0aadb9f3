package card

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/internal/helptest"
)

var must = helptest.Must

// fakeLists keeps lists in memory, the oldest entry first.
type fakeLists struct {
	lists  map[string][][]byte
	scopes map[string][]string // scopes of all entries of a list
	err    error
}

func (f *fakeLists) Add(_ context.Context, list string, entry []byte, _ int64, scopes ...string) error {
	if f.lists == nil {
		f.lists, f.scopes = make(map[string][][]byte), make(map[string][]string)
	}
	f.lists[list] = append(f.lists[list], entry)
	f.scopes[list] = append(f.scopes[list], scopes...)
	return f.err
}

func (f *fakeLists) Entries(_ context.Context, each func(string, []byte), lists ...string) error {
	for _, l := range lists {
		for _, e := range slices.Backward(f.lists[l]) {
			each(l, e)
		}
	}
	return f.err
}

func (f *fakeLists) Remove(_ context.Context, meant func([]byte) bool, lists ...string) error {
	for _, l := range lists {
		f.lists[l] = slices.DeleteFunc(f.lists[l], meant)
	}
	return f.err
}

var (
	ann     = graphiti.Target{Scope: graphiti.ScopeUser, Group: "u"}
	project = graphiti.Target{Scope: graphiti.ScopeWorkspace, Group: "w"}
	reads   = []graphiti.Target{{Scope: graphiti.ScopeSession, Group: "s"}, project, ann}
)

func day(n int) time.Time { return time.Date(2026, 11, n, 12, 0, 0, 0, time.UTC) }

func keep(t *testing.T, c Cards, to graphiti.Target, session, kind, text string, n int) {
	t.Helper()
	turn := &ledger.Turn{ID: fmt.Sprint(kind, text, n), Kind: kind, User: text, Session: session, Owner: "user:ann", Said: day(n), Targets: []graphiti.Target{to}}
	must(t, c.Keep(turn, []string{to.Group}))
}

const (
	here  = "place of w"
	there = "place of v"
)

// put stores a line in the group of a target, dated the given day of November 2026.
func put(t *testing.T, c Cards, to graphiti.Target, l Line, n int) {
	t.Helper()
	if l.Kind == "" {
		l.Kind = KindRule
	}
	l.Group, l.At, l.Session, l.Owner = to.Group, day(n).Unix(), "s1", "user:ann"
	must(t, c.Put(t.Context(), l, 0))
}

func texts(t *testing.T, c Cards, place string, reads ...graphiti.Target) (out []string) {
	t.Helper()
	facts, err := c.Facts(t.Context(), reads, place)
	must(t, err)
	for _, f := range facts {
		if f.Group == "" || !f.Dated || f.CreatedAt.IsZero() {
			t.Errorf("got %+v, want a fact with group and date", f)
		}
		out = append(out, f.Text)
	}
	return out
}

// TestFacts checks that the project's lines come before the person's, each with the newest
// first.
func TestFacts(t *testing.T) {
	c := Cards{Lists: &fakeLists{}}
	keep(t, c, ann, "", "preference", "British English", 5)
	keep(t, c, project, "session:1", "decision", "Postgres,\n not MySQL", 1)
	keep(t, c, project, "session:1", "decision", "Sessions last a day", 2)
	keep(t, c, project, "session:1", "task_update", "half of it is done", 3)
	want := []string{"decision, 2026-11-02: Sessions last a day", "decision, 2026-11-01: Postgres, not MySQL", "preference, 2026-11-05: British English"}
	if diff := cmp.Diff(want, texts(t, c, here, reads...)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := texts(t, c, here); got != nil {
		t.Errorf("got %q without groups, want nothing", got)
	}
}

// TestLines_NewestState checks that the newest entry of a line counts, and that pending
// lines do not displace confirmed ones.
func TestLines_NewestState(t *testing.T) {
	f := &fakeLists{}
	c := Cards{Lists: f}
	put(t, c, ann, Line{Text: "Always use tabs.", State: Pending, Place: here}, 1)
	put(t, c, ann, Line{Text: "Always use tabs.", State: Confirmed, Place: here}, 1)
	if got := len(f.lists["card:u"]); got != 1 {
		t.Errorf("got %d entries among those that are decided, want 1", got)
	}
	put(t, c, ann, Line{Text: "Always use tabs.", State: Pending, Place: here, Applies: true}, 1)
	lines, err := c.Lines(t.Context(), reads)
	if err != nil || len(lines) != 1 || lines[0].State != Pending || !lines[0].Applies {
		t.Errorf("got %+v, %v; want the line as it was stored last", lines, err)
	}
}

// TestPut_Scopes checks that a line has the scopes of its group, its project and its
// conversation, so that it is deleted with each of them.
func TestPut_Scopes(t *testing.T) {
	f := &fakeLists{}
	c := Cards{Lists: f}
	must(t, c.Put(t.Context(), Line{Kind: KindRule, Text: "Always use tabs.", State: Pending, Group: "u", Session: "h", Owner: "user:ann"}, 0, "u", "w"))
	want := map[string][]string{
		"waits:u": {"u", "w", graphiti.SessionScopeOf("h", ""), graphiti.SessionScopeOf("h", "user:ann")},
	}
	if diff := cmp.Diff(want, f.scopes); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestCardOfNewlyStoredTurns checks that a turn is added only to the cards of groups that
// newly stored it, and that an exported turn keeps its kind and its text.
func TestCardOfNewlyStoredTurns(t *testing.T) {
	c := Cards{Lists: &fakeLists{}}
	text := graphiti.Curated{Kind: "decision", Scope: graphiti.ScopeUser, At: day(1), Text: "Postgres"}.String()
	turn := &ledger.Turn{Kind: "decision", User: text, Owner: "user:ann", Said: day(1), Targets: []graphiti.Target{ann, project}}
	must(t, c.Keep(turn, []string{"w"}))
	if diff := cmp.Diff([]string{"decision, 2026-11-01: Postgres"}, texts(t, c, here, project)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := texts(t, c, here, ann); got != nil {
		t.Errorf("the card shows %q, want nothing", got)
	}
}

func TestCardCannotBeRead(t *testing.T) {
	f := &fakeLists{err: errors.New("down")}
	if err := (Cards{Lists: f}).Keep(&ledger.Turn{Kind: "decision", User: "Postgres", Targets: []graphiti.Target{project}}, []string{"w"}); err == nil {
		t.Error("what cannot be kept is said to be")
	}
	f.lists = map[string][][]byte{}
	f.lists["card:u"], f.lists["card:w"] = [][]byte{[]byte("{")}, nil
	if facts, err := (Cards{Lists: f}).Facts(t.Context(), reads, here); err == nil || facts != nil {
		t.Errorf("got facts %v, %v; want an error", facts, err)
	}
	f.err = nil
	if got := texts(t, Cards{Lists: f}, here, reads...); got != nil {
		t.Errorf("of what is no entry: %q", got)
	}
}

func TestLongEntriesAreCutBetweenWords(t *testing.T) {
	c := Cards{Lists: &fakeLists{}}
	keep(t, c, ann, "", "decision", strings.Repeat("wörd ", 200), 1)
	got := texts(t, c, here, ann)
	if len(got) != 1 || len([]rune(got[0])) > len("decision, 2026-11-01: ")+maxChars || !strings.HasSuffix(got[0], " wörd…") {
		t.Errorf("the card shows %q, want one line, cut after a word", got)
	}
}

// TestRemove checks that Remove deletes the lines of one turn only.
func TestRemove(t *testing.T) {
	f := &fakeLists{}
	c := Cards{Lists: f}
	put(t, c, ann, Line{Text: "Always use tabs.", State: Pending, Turn: "t1", Place: here}, 1)
	put(t, c, ann, Line{Text: "Never push to main.", State: Confirmed, Turn: "t2", Place: here}, 1)
	must(t, c.Remove(t.Context(), []string{"u"}, func(l *Line) bool { return l.Turn == "t1" }))
	if rest := fmt.Sprintf("%s", f.lists); strings.Contains(rest, "tabs") || !strings.Contains(rest, "push to main") {
		t.Errorf("left in the lists: %s", rest)
	}
}

// TestSays checks that a text contains a statement if one of its sentences has all words of
// the statement and does not deny it.
func TestSays(t *testing.T) {
	for _, tc := range []struct {
		text, said string
		want       bool
	}{
		{"user, 2026-11-25: Remember that I live in Linz.", "I live in Linz", true},
		{"I have a cat. I live in Linz.", "I live in Linz", true},
		{"I live in Salzburg now, not Linz", "I live in Linz", false},
		{"I live in Salzburg", "I live in Linz", false},
		{"I live in Linz", "it is", false},
		{"Retiens que la démo est vendredi.", "la démo est vendredi", true},
		{"Merk dir, dass die Demo am Freitag ist.", "die Demo am Freitag ist", true},
	} {
		if got := Says(tc.text, tc.said); got != tc.want {
			t.Errorf("Says(%q, %q) = %v, want %v", tc.text, tc.said, got, tc.want)
		}
	}
}
