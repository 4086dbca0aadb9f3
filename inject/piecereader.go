package inject

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"math"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

var errPieces = errors.New("the ids of a stored decision are damaged")

// Read decodes pieces.
func (p Pieces) Read() (c Considered, err error) {
	if p == "" {
		return c, nil
	}
	r := pieceReader{rest: string(p)}
	if r.byte() != piecesForm {
		return c, errPieces
	}
	copy(c.Owner[:], r.take(ownerID))
	c.MinScore, c.Found, c.Opening = r.strength(), r.number(), r.number()
	for r.rest != "" && !r.bad && len(c.Pieces) <= maxShown+maxRejected {
		c.Pieces = append(c.Pieces, r.piece())
	}
	if r.bad || r.rest != "" {
		return Considered{}, errPieces
	}
	return c, nil
}

// pieceReader decodes the output of a pieceWriter.
type pieceReader struct {
	rest   string
	groups []graphiti.Target
	bad    bool // the input is malformed
}

func (r *pieceReader) take(n int) string {
	if n < 0 || n > len(r.rest) {
		r.bad, r.rest = true, ""
		return ""
	}
	s := r.rest[:n]
	r.rest = r.rest[n:]
	return s
}

func (r *pieceReader) byte() byte {
	if s := r.take(1); s != "" {
		return s[0]
	}
	return 0
}

func (r *pieceReader) number() int {
	n, size := binary.Uvarint([]byte(r.rest[:min(len(r.rest), binary.MaxVarintLen32)]))
	if size <= 0 || n > math.MaxInt32 {
		r.bad, r.rest = true, ""
		return 0
	}
	r.rest = r.rest[size:]
	return int(n) //nolint:gosec // it fits
}

func (r *pieceReader) text() string { return r.take(r.number()) }

func (r *pieceReader) strength() float64 {
	s := r.take(2)
	if s == "" {
		return 0
	}
	return float64(uint16(s[0])<<8|uint16(s[1])) / strongest
}

// group reads the scope and the id of a group.
func (r *pieceReader) group() (t graphiti.Target) {
	at := int(r.byte())
	switch {
	case at == noGroup:
	case at < len(r.groups):
		return r.groups[at]
	case at == len(r.groups) && at < maxGroups:
		if s := int(r.byte()); s < len(scopes) {
			t.Scope = scopes[s]
		}
		t.Group = r.text()
		r.groups = append(r.groups, t)
	default:
		r.bad = true
	}
	return t
}

func (r *pieceReader) piece() (p Piece) {
	flags, verdict := r.byte(), int(r.byte())
	in := r.group()
	p.Scope, p.Group, p.Line = in.Scope, in.Group, r.number()
	if p.Weighed = flags&weighed != 0; p.Weighed {
		p.Strength = r.strength()
	}
	if verdict >= len(verdicts) || flags&^(idBits|weighed) != 0 {
		r.bad = true
		return p
	}
	p.Verdict = verdicts[verdict]
	switch kind := flags & idBits; kind {
	case idNone:
	case idUser, idAssistant, idSystem:
		p.Episode = graphiti.EpisodeName(hex.EncodeToString([]byte(r.take(cardID))), turnRole[kind])
	case idName:
		p.Episode = r.text()
	case idUUID:
		if raw := r.take(16); raw != "" {
			p.UUID = uuidOf([]byte(raw))
		}
	case idText:
		p.UUID = r.text()
	case idCard:
		copy(p.Card[:], r.take(cardID))
	default:
		r.bad = true
	}
	return p
}
