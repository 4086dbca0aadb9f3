package inject

import (
	"cmp"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// Pieces is the JSON form of Considered, about 100 bytes for a piece. It contains IDs but no
// text, because every decision after a search has one.
type Pieces string

// Considered lists a turn's shown results and the best rejected ones.
type Considered struct {
	Owner    string            `json:"o"`           // from OwnerID
	MinScore float64           `json:"m,omitempty"` // strength required of the best result; 0 disables the check
	Found    int               `json:"f"`           // number of search results, listed or not
	Opening  int               `json:"n,omitempty"` // number of lines from the card and from notes
	Groups   []graphiti.Target `json:"g,omitempty"` // groups of the pieces
	Pieces   []Piece           `json:"p,omitempty"` // shown pieces by line, then rejected ones, best first
}

// Piece is one search result or card entry.
type Piece struct {
	Verdict  Verdict `json:"v"`
	Line     int     `json:"l,omitempty"` // 1-based line of the block; 0 if rejected
	Strength float64 `json:"s,omitempty"`
	Weighed  bool    `json:"w,omitempty"` // whether Strength is measured

	In              int        `json:"g,omitempty"` // 1-based index in Groups; 0 without a group
	graphiti.Target `json:"-"` // Groups[In-1], set by Read

	// At most one of these is set: a message name, a fact's UUID, or a card entry's CardID.
	Episode string `json:"e,omitempty"`
	UUID    string `json:"u,omitempty"`
	Card    string `json:"c,omitempty"`
}

// Limits of Pieces. Shown lines beyond maxShown have no piece.
const (
	maxShown    = 64
	maxRejected = 6
	maxGroups   = 8
	maxID       = 128 // bytes of a name or an ID; a longer one is omitted
	maxPieces   = 64 << 10
)

var errPieces = errors.New("the ids of a stored decision are damaged")

// CardID returns the ID of a card entry. It ignores speaker and date.
func CardID(text string) string {
	if label := lineLabel(text); label != "" {
		text = text[len(label):]
	}
	sum := graphiti.Digest("card", text)
	return hex.EncodeToString(sum[:16])
}

// OwnerID returns the ID of a turn's owner. Turn IDs do not identify owners, and imports may
// contain any turn ID.
func OwnerID(owner string) string {
	sum := graphiti.Digest("owner of a turn", owner)
	return hex.EncodeToString(sum[:8])
}

// Read decodes pieces.
func (p Pieces) Read() (c Considered, err error) {
	if p == "" {
		return c, nil
	}
	if len(p) > maxPieces {
		return c, errPieces
	}
	if err := json.Unmarshal([]byte(p), &c); err != nil {
		return Considered{}, fmt.Errorf("%w: %w", errPieces, err)
	}
	odd := func(p Piece) bool { return p.In < 0 || p.In > len(c.Groups) || p.Line < 0 }
	if len(c.Pieces) > maxShown+maxRejected || c.Found < 0 || c.Opening < 0 || slices.ContainsFunc(c.Pieces, odd) {
		return Considered{}, errPieces
	}
	for i := range c.Pieces {
		if p := &c.Pieces[i]; p.In > 0 {
			p.Target = c.Groups[p.In-1]
		}
	}
	return c, nil
}

// piecesOf encodes a block's opening and search results. minScore is the required strength.
func piecesOf(owner string, opening, found []Candidate, reads []graphiti.Target, minScore float64) Pieces {
	c := Considered{Owner: OwnerID(owner), MinScore: rounded(minScore), Found: len(found), Opening: len(opening)}
	for i := range opening {
		if f := opening[i].Fact; f != nil {
			p := c.piece(&opening[i], i+1, reads)
			p.Episode, p.UUID, p.Card = "", "", CardID(f.Text)
			c.Pieces = append(c.Pieces, p)
		}
	}
	shown, rejected := sorted(found)
	for _, f := range shown {
		c.Pieces = append(c.Pieces, c.piece(f, len(opening)+f.row, reads))
	}
	c.Pieces = c.Pieces[:min(len(c.Pieces), maxShown)]
	for _, f := range rejected {
		c.Pieces = append(c.Pieces, c.piece(f, 0, reads))
	}
	if len(opening)+len(c.Pieces) == 0 {
		return ""
	}
	text, err := json.Marshal(&c)
	if err != nil {
		return ""
	}
	return Pieces(text)
}

// sorted returns the shown results by row, and the best rejected ones.
func sorted(found []Candidate) (shown, rejected []*Candidate) {
	for i := range found {
		if c := &found[i]; c.Verdict == Shown {
			shown = append(shown, c)
		} else {
			rejected = append(rejected, c)
		}
	}
	slices.SortStableFunc(shown, func(a, b *Candidate) int { return a.row - b.row })
	slices.SortStableFunc(rejected, nearer)
	return shown[:min(len(shown), maxShown)], rejected[:min(len(rejected), maxRejected)]
}

// nearer orders rejected results: distinct content first, then greater strength.
func nearer(a, b *Candidate) int {
	rank := func(c *Candidate) float64 {
		switch {
		case c.Verdict == Repeated || c.Verdict == Empty:
			return -2
		case !c.Fact.Weighed:
			return -1
		}
		return c.Fact.Strength
	}
	return cmp.Compare(rank(b), rank(a))
}

// piece returns the piece of a candidate, and adds its group to Groups.
func (c *Considered) piece(of *Candidate, line int, reads []graphiti.Target) Piece {
	f := of.Fact
	p := Piece{Verdict: of.Verdict, In: c.in(of, reads), Line: line}
	if p.Weighed = f.Weighed; p.Weighed {
		p.Strength = rounded(f.Strength)
	}
	switch {
	case len(f.Episode) > maxID, f.Episode == "" && len(f.UUID) > maxID:
	case f.Episode != "":
		p.Episode = f.Episode
	default:
		p.UUID = f.UUID
	}
	return p
}

// in returns the index of a candidate's group: its fact's, or else the first searched group
// of its scope.
func (c *Considered) in(of *Candidate, reads []graphiti.Target) int {
	is := func(t graphiti.Target) bool { return t.Group == of.Fact.Group }
	if of.Fact.Group == "" {
		is = func(t graphiti.Target) bool { return t.Scope == of.Scope }
	}
	var t graphiti.Target
	if i := slices.IndexFunc(reads, is); i >= 0 {
		t = reads[i]
	} else if t.Group = of.Fact.Group; t.Group != "" {
		t.Scope, _ = graphiti.ScopeOf(t.Group)
	}
	at := slices.Index(c.Groups, t)
	switch {
	case t.Group == "", at < 0 && len(c.Groups) == maxGroups:
		return 0
	case at < 0:
		c.Groups = append(c.Groups, t)
		return len(c.Groups)
	}
	return at + 1
}

// rounded returns a strength from 0 to 1 with four digits.
func rounded(s float64) float64 {
	if math.IsNaN(s) {
		return 0
	}
	return math.Round(1e4*min(max(s, 0), 1)) / 1e4
}
