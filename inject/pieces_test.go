package inject

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

const turnID = "0123456789abcdef0123456789abcdef"

// TestPiecesRoundTrip checks that Read returns the encoded pieces, in the order of
// the block's lines, with any ids of a memory, and that they contain no text.
func TestPiecesRoundTrip(t *testing.T) {
	reads := []graphiti.Target{{Scope: graphiti.ScopeWorkspace, Group: "p"}, {Scope: graphiti.ScopeUser, Group: "user_josh"}}
	long := strings.Repeat("n", maxID+1)
	fact := func(f graphiti.Fact) *graphiti.Fact { f.Text = "secret words"; return &f }
	found := []Candidate{
		{Fact: fact(graphiti.Fact{Episode: graphiti.EpisodeName(turnID, graphiti.RoleUser), Group: "p", Strength: 0.61239, Weighed: true}), Scope: graphiti.ScopeWorkspace, Verdict: Shown, row: 2},
		{Fact: fact(graphiti.Fact{Episode: graphiti.EpisodeName(turnID, graphiti.RoleAssistant), Strength: 2, Weighed: true}), Scope: graphiti.ScopeUser, Verdict: Shown, row: 1},
		{Fact: fact(graphiti.Fact{Episode: graphiti.EpisodeName(turnID, graphiti.RoleSystem), Group: "p"}), Verdict: Shown, row: 2},
		{Fact: fact(graphiti.Fact{Episode: "a note of another program", UUID: "u", Group: "other"}), Verdict: Weak},
		{Fact: fact(graphiti.Fact{Episode: graphiti.EpisodeName(strings.ToUpper(turnID), "stranger")}), Verdict: Visible},
		{Fact: fact(graphiti.Fact{UUID: "01234567-89ab-cdef-0123-456789abcdef"}), Scope: graphiti.ScopeUser, Verdict: Shown, row: 3},
		{Fact: fact(graphiti.Fact{UUID: "01234567-89AB-cdef-0123-456789abcdef"}), Verdict: Weak},
		{Fact: fact(graphiti.Fact{UUID: "edge-7"}), Verdict: NoRoom},
		{Fact: fact(graphiti.Fact{Episode: long, UUID: "v"}), Verdict: Repeated},
		{Fact: fact(graphiti.Fact{}), Verdict: Empty},
	}
	opening := []Candidate{{Line: "a note", Verdict: Shown}, {Fact: &graphiti.Fact{Text: "decision, 2026-01-02: tabs", Group: "graphiti_session_x"}, Verdict: Shown}}
	p := piecesOf("user:josh", opening, found, reads, 0.15)
	if strings.Contains(string(p), "secret") || strings.Contains(string(p), "tabs") {
		t.Errorf("a text: %q", p)
	}
	got, err := p.Read()
	session := graphiti.Target{Scope: graphiti.ScopeSession, Group: "graphiti_session_x"}
	want := Considered{Owner: OwnerID("user:josh"), MinScore: 0.15, Found: len(found), Opening: 2, Groups: []graphiti.Target{session, reads[1], reads[0], {Group: "other"}}, Pieces: []Piece{
		{Verdict: Shown, In: 1, Target: session, Line: 2, Card: CardID("decision, 2026-01-02: tabs")},
		{Verdict: Shown, In: 2, Target: reads[1], Line: 3, Episode: graphiti.EpisodeName(turnID, graphiti.RoleAssistant), Strength: 1, Weighed: true},
		{Verdict: Shown, In: 3, Target: reads[0], Line: 4, Episode: graphiti.EpisodeName(turnID, graphiti.RoleUser), Strength: 0.6124, Weighed: true},
		{Verdict: Shown, In: 3, Target: reads[0], Line: 4, Episode: graphiti.EpisodeName(turnID, graphiti.RoleSystem)},
		{Verdict: Shown, In: 2, Target: reads[1], Line: 5, UUID: "01234567-89ab-cdef-0123-456789abcdef"},
		{Verdict: Weak, In: 4, Target: graphiti.Target{Group: "other"}, Episode: "a note of another program"},
		{Verdict: Visible, Episode: graphiti.EpisodeName(strings.ToUpper(turnID), "stranger")},
		{Verdict: Weak, UUID: "01234567-89AB-cdef-0123-456789abcdef"},
		{Verdict: NoRoom, UUID: "edge-7"},
		{Verdict: Repeated},
		{Verdict: Empty},
	}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	for n := 1; n < len(p); n++ {
		if got, err := p[:n].Read(); err == nil {
			t.Errorf("cut to %d bytes: got %d pieces, want an error", n, len(got.Pieces))
		}
	}
}

// TestPiecesAreFew checks that pieces list only the strongest rejected facts and a limited
// number of shown ones, in a few bytes each.
func TestPiecesAreFew(t *testing.T) {
	var found []Candidate
	for i := range 1000 {
		found = append(found, Candidate{Verdict: Weak, Fact: &graphiti.Fact{
			Episode: graphiti.EpisodeName(fmt.Sprintf("%032x", i), graphiti.RoleUser), Group: fmt.Sprint("group", i/10), Strength: float64(i) / 1000, Weighed: true,
		}})
	}
	found[999].Verdict, found[998].Verdict = Repeated, Empty
	got, err := piecesOf("", nil, found, nil, 0).Read()
	if err != nil || len(got.Pieces) != maxRejected || got.Found != 1000 {
		t.Fatalf("%+v, %v", got, err)
	}
	for i, p := range got.Pieces {
		if want := float64(997-i) / 1000; p.Strength != want || p.Group != fmt.Sprint("group", (997-i)/10) {
			t.Errorf("piece %d: %+v, want strength %v", i, p, want)
		}
	}
	for i := range found {
		found[i].Verdict, found[i].row, found[i].Fact.Group = Shown, i+1, "g"
	}
	p := piecesOf("", nil, found, nil, 0)
	if got, err = p.Read(); err != nil || len(got.Pieces) != maxShown || len(p) > 120*maxShown {
		t.Errorf("%d pieces in %d bytes, %v", len(got.Pieces), len(p), err)
	}
	if p := piecesOf("", nil, nil, nil, 0.2); p != "" {
		t.Errorf("of nothing: %q", p)
	}
	if got, err := piecesOf("", []Candidate{{Line: "a note"}}, nil, nil, 0.2).Read(); err != nil || got.Opening != 1 || got.Pieces != nil {
		t.Errorf("of a note: %+v, %v", got, err)
	}
}

// TestDecisionListsResults checks that a decision lists the results of its search
// and the card, with or without a block, and that a retry does not add another decision.
func TestDecisionListsResults(t *testing.T) {
	search := func(strength float64) searchFunc {
		return func(_ context.Context, group, _ string) ([]graphiti.Fact, error) {
			if group != "u" {
				return nil, nil
			}
			return []graphiti.Fact{
				{Text: "ann, 2026-01-02: beans are in bed 3", Said: "ann, 2026-01-02", Dated: true, Episode: graphiti.EpisodeName(turnID, graphiti.RoleUser), Strength: strength, Weighed: true, ValidAt: time.Unix(1, 0)},
				{Text: "ann, 2026-01-02: peas are in bed 4", Said: "ann, 2026-01-02", Dated: true, UUID: "edge-1", Strength: strength / 2, Weighed: true, ValidAt: time.Unix(1, 0)},
			}, nil
		}
	}
	for name, tc := range map[string]struct {
		strength float64
		card     []graphiti.Fact
		lines    []int
		verdicts []Verdict
	}{
		"shown, two in one line": {0.5, nil, []int{1, 1}, []Verdict{Shown, Shown}},
		"silence":                {0.08, nil, []int{0, 0}, []Verdict{Weak, Weak}},
		"the card":               {0.08, facts("decision, 2026-01-02: tabs"), []int{1, 0, 0}, []Verdict{Shown, Weak, Weak}},
		"the card, and shown":    {0.5, facts("decision, 2026-01-02: tabs"), []int{1, 2, 2}, []Verdict{Shown, Shown, Shown}},
	} {
		kept := &fakeDecisions{}
		m := memory(t, search(tc.strength), kept)
		o := *m.opts()
		o.MinScore, o.CardChars = 0.15, 500
		s := *o.Services
		s.Opening = opens(tc.card)
		o.Services = &s
		m.o.Store(&o)
		for range 2 {
			ask(t, m, `{"messages":[{"role":"user","content":"Where are the beans?"}]}`, both)
		}
		if len(kept.kept) != 1 {
			t.Fatalf("%s: %d decisions", name, len(kept.kept))
		}
		for _, d := range kept.kept {
			got, err := d.Pieces.Read()
			if err != nil || got.Owner != OwnerID("user:p") || got.MinScore != 0.15 || got.Found != 2 || got.Opening != len(tc.card) || len(got.Pieces) != len(tc.lines) {
				t.Fatalf("%s: %+v, %v", name, got, err)
			}
			for i, p := range got.Pieces {
				if p.Line != tc.lines[i] || p.Verdict != tc.verdicts[i] || p.Card == "" && p.Group != "u" {
					t.Errorf("%s: piece %d: %+v", name, i, p)
				}
			}
		}
	}
}

// opens is an Opening with fixed statements.
type opens []graphiti.Fact

func (o opens) Standing(context.Context, graphiti.Who) ([]graphiti.Fact, error) { return o, nil }

// TestDamagedPieces checks that Read returns an error for damaged pieces.
func TestDamagedPieces(t *testing.T) {
	for _, s := range []string{
		"x", "{}{}", `{"p":[{"g":1}]}`, `{"p":[{"g":-1}]}`, `{"p":[{"l":-1}]}`, `{"f":-1}`, `{"n":-1}`, `{"p":7}`,
		`{"p":[` + strings.Repeat("{},", maxShown+maxRejected) + `{}]}`, strings.Repeat(" ", maxPieces) + "{}",
	} {
		if got, err := Pieces(s).Read(); err == nil || got.Pieces != nil {
			t.Errorf("Read(%.40q) = %+v, %v, want an error", s, got, err)
		}
	}
}
