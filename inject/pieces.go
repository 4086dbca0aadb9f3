package inject

import "github.com/graphiti-proxy/graphiti-proxy/graphiti"

// Pieces is the compact binary form of Considered, about 25 bytes for a piece. It contains
// IDs but no text, because every decision after a search has one.
type Pieces string

// Considered lists a turn's shown results and the best rejected ones.
type Considered struct {
	Owner    [ownerID]byte // from OwnerID
	MinScore float64       // strength required of the best result; 0 disables the check
	Found    int           // number of search results, listed or not
	Opening  int           // number of lines from the card and from notes
	Pieces   []Piece       // shown pieces by line, then rejected ones, best first
}

// Piece is one search result or card entry.
type Piece struct {
	Verdict  Verdict
	Scope    graphiti.Scope
	Group    string
	Line     int // 1-based line of the block; 0 if rejected
	Strength float64
	Weighed  bool // whether Strength is measured

	// At most one of these is set: a message name, a fact's UUID, or a card entry's CardID.
	Episode string
	UUID    string
	Card    [cardID]byte
}

// Limits of Pieces. Shown lines beyond maxShown have no piece.
const (
	maxShown    = 64
	maxRejected = 6
	maxGroups   = 8
	maxID       = 128 // bytes of a name or an id; a longer one is left out
)

// Encodings of a piece's ID, in the lower bits of its first byte.
const (
	idNone = iota
	idUser // of a turn: 16 bytes for the turn
	idAssistant
	idSystem
	idName // raw name
	idUUID // 16 bytes
	idText // raw text of a UUID in another form
	idCard // 16 bytes

	idBits  = 0x0f
	weighed = 0x10
)

const (
	piecesForm = 1    // the first byte
	strongest  = 1e4  // encoding of strength 1
	noGroup    = 0xff // index of a piece's group
	cardID     = 16   // bytes
	ownerID    = 8    // bytes
)

// verdicts and scopes are encoded by index. Append new ones at the end.
var (
	verdicts = []Verdict{Shown, NotValid, OwnWords, Visible, Repeated, Superseded, Instruction, Empty, NoRoom, NoDrift, Weak}
	scopes   = []graphiti.Scope{"", graphiti.ScopeSession, graphiti.ScopeWorkspace, graphiti.ScopeUser, graphiti.ScopeAgent, graphiti.ScopeSystem}
	turnRole = map[byte]graphiti.RoleType{idUser: graphiti.RoleUser, idAssistant: graphiti.RoleAssistant, idSystem: graphiti.RoleSystem}
)

// CardID returns the ID of a card entry. It ignores speaker and date.
func CardID(text string) (id [cardID]byte) {
	if label := lineLabel(text); label != "" {
		text = text[len(label):]
	}
	sum := graphiti.Digest("card", text)
	copy(id[:], sum[:])
	return id
}

// OwnerID returns the ID of a turn's owner. Turn IDs do not identify owners, and imports may
// contain any turn ID.
func OwnerID(owner string) (id [ownerID]byte) {
	sum := graphiti.Digest("owner of a turn", owner)
	copy(id[:], sum[:])
	return id
}

// piecesOf encodes a block's opening and search results. minScore is the required strength.
func piecesOf(owner string, opening, found []Candidate, reads []graphiti.Target, minScore float64) Pieces {
	var best [maxRejected]*Candidate
	shown, rejected := 0, 0
	for i := range found {
		c := &found[i]
		if c.Verdict == Shown {
			shown++
			continue
		}
		at := rejected
		for at > 0 && nearer(c, best[at-1]) {
			at--
		}
		if at == maxRejected {
			continue
		}
		rejected = min(rejected+1, maxRejected)
		copy(best[at+1:rejected], best[at:])
		best[at] = c
	}
	if shown += len(opening); shown+rejected == 0 {
		return ""
	}
	w := pieceWriter{b: make([]byte, 0, 64+24*(min(shown, maxShown)+rejected)), reads: reads}
	id := OwnerID(owner)
	w.b = append(append(w.b, piecesForm), id[:]...)
	w.strength(minScore)
	w.number(len(found))
	w.number(len(opening))
	for i := range opening {
		if opening[i].Fact != nil {
			w.piece(&opening[i], i+1, true)
		}
	}
	w.shown(found, len(opening))
	for _, c := range best[:rejected] {
		w.piece(c, 0, false)
	}
	return Pieces(w.b)
}

// nearer reports whether rejected result a ranks before b: distinct content first, then
// greater strength.
func nearer(a, b *Candidate) bool {
	x, y := a.Verdict == Repeated || a.Verdict == Empty, b.Verdict == Repeated || b.Verdict == Empty
	if x != y {
		return y
	}
	return a.Fact.Weighed && b.Fact.Weighed && a.Fact.Strength > b.Fact.Strength
}
