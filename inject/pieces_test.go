package inject

import (
	"fmt"
	"strings"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

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
