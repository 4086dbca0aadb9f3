package inject

import "github.com/graphiti-proxy/graphiti-proxy/graphiti"

// Pieces say what a search found for a turn, and what the block began with: each piece that
// the block shows, and the best of those that it does not. They name a piece by its id, and
// hold nothing of its text. Every decision after a search has them, so they are bytes, some
// 25 for a piece; Read takes them apart.
type Pieces string

// Considered is what was considered for a turn.
type Considered struct {
	Owner    [ownerID]byte // what OwnerID makes of whose turn it is
	MinScore float64       // strength that one piece had to have for any to be shown; 0: none
	Found    int           // pieces that were found, listed or not
	Opening  int           // lines of the block that were no search's: of the card, and notes of the session
	Pieces   []Piece       // those that were shown in the order of their lines, then the others, the best first
}

// Piece is one thing that was found, or that the card had.
type Piece struct {
	Verdict  Verdict
	Scope    graphiti.Scope
	Group    string
	Line     int // of the block, from 1; 0: it was not shown
	Strength float64
	Weighed  bool // whether Strength counts

	// One of these at most: the name of a message, the UUID of a fact, or what CardID
	// makes of an entry of the card.
	Episode string
	UUID    string
	Card    [cardID]byte
}

// The bounds of Pieces. More lines than that have no piece.
const (
	maxShown    = 64
	maxRejected = 6
	maxGroups   = 8
	maxID       = 128 // bytes of a name or an id; a longer one is left out
)

// How the id of a piece is written, in the lower bits of its first byte.
const (
	idNone = iota
	idUser // of a turn: 16 bytes for the turn
	idAssistant
	idSystem
	idName // as it stands
	idUUID // 16 bytes
	idText // a UUID in another form, as it stands
	idCard // 16 bytes

	idBits  = 0x0f
	weighed = 0x10
)

const (
	piecesForm = 1    // the first byte
	strongest  = 1e4  // what a strength of 1 is written as
	noGroup    = 0xff // index of a piece's group
	cardID     = 16   // bytes
	ownerID    = 8    // bytes
)

// verdicts and scopes are written as their index. New ones come at the end.
var (
	verdicts = []Verdict{Shown, NotValid, OwnWords, Visible, Repeated, Superseded, Instruction, Empty, NoRoom, NoDrift, Weak}
	scopes   = []graphiti.Scope{"", graphiti.ScopeSession, graphiti.ScopeWorkspace, graphiti.ScopeUser, graphiti.ScopeAgent, graphiti.ScopeSystem}
	turnRole = map[byte]graphiti.RoleType{idUser: graphiti.RoleUser, idAssistant: graphiti.RoleAssistant, idSystem: graphiti.RoleSystem}
)

// CardID names an entry of the card by what it says, whenever that was said last.
func CardID(text string) (id [cardID]byte) {
	if label := lineLabel(text); label != "" {
		text = text[len(label):]
	}
	sum := graphiti.Digest("card", text)
	copy(id[:], sum[:])
	return id
}

// OwnerID names the owner of a turn. A turn's id says nothing of whose it is, and an import
// may bring any.
func OwnerID(owner string) (id [ownerID]byte) {
	sum := graphiti.Digest("owner of a turn", owner)
	copy(id[:], sum[:])
	return id
}

// piecesOf are the pieces of what a block begins with and of what was found, for a turn of
// an owner. minScore is the strength that was asked for.
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

// nearer reports whether one that is not shown was nearer to it than another: it says
// something of its own, and more strongly.
func nearer(a, b *Candidate) bool {
	x, y := a.Verdict == Repeated || a.Verdict == Empty, b.Verdict == Repeated || b.Verdict == Empty
	if x != y {
		return y
	}
	return a.Fact.Weighed && b.Fact.Weighed && a.Fact.Strength > b.Fact.Strength
}
