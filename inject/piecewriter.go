package inject

import (
	"encoding/binary"
	"encoding/hex"
	"math"
	"slices"
	"strings"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// pieceWriter encodes pieces. The first use of a group writes its name, later uses its
// index.
type pieceWriter struct {
	b      []byte
	reads  []graphiti.Target
	groups [maxGroups]string
	met    int // number of groups
	lines  int // number of shown pieces
}

// group writes a candidate's group: its fact's, or else the first searched group of its
// scope.
func (w *pieceWriter) group(c *Candidate) {
	name := c.Fact.Group
	for i := 0; name == "" && i < len(w.reads); i++ {
		if w.reads[i].Scope == c.Scope {
			name = w.reads[i].Group
		}
	}
	at := slices.Index(w.groups[:w.met], name)
	switch {
	case name == "", at < 0 && w.met == maxGroups:
		w.b = append(w.b, noGroup)
	case at >= 0:
		w.b = append(w.b, byte(at))
	default:
		w.groups[w.met] = name
		w.b = append(w.b, byte(w.met), byte(max(0, slices.Index(scopes, w.scopeOf(name))))) //nolint:gosec // both are small
		w.text(name)
		w.met++
	}
}

func (w *pieceWriter) scopeOf(group string) graphiti.Scope {
	for i := range w.reads {
		if w.reads[i].Group == group {
			return w.reads[i].Scope
		}
	}
	s, _ := graphiti.ScopeOf(group)
	return s
}

// shown writes the shown results by row. Facts of one row may not be adjacent.
func (w *pieceWriter) shown(found []Candidate, opening int) {
	for line, more := 1, true; more; line++ {
		more = false
		for i := range found {
			if c := &found[i]; c.Verdict == Shown && c.row == line {
				w.piece(c, opening+line, false)
				more = true
			}
		}
	}
}

func (w *pieceWriter) piece(c *Candidate, line int, card bool) {
	if line > 0 {
		if w.lines++; w.lines > maxShown {
			return
		}
	}
	kind, id, raw := idOf(c.Fact)
	if card {
		kind, raw = idCard, CardID(c.Fact.Text)
	}
	if c.Fact.Weighed {
		kind |= weighed
	}
	w.b = append(w.b, kind, byte(slices.Index(verdicts, c.Verdict))) //nolint:gosec // a test holds that it is there
	w.group(c)
	w.number(line)
	if c.Fact.Weighed {
		w.strength(c.Fact.Strength)
	}
	switch kind & idBits {
	case idNone:
	case idName, idText:
		w.text(id)
	default:
		w.b = append(w.b, raw[:]...)
	}
}

func (w *pieceWriter) number(n int) { w.b = binary.AppendUvarint(w.b, uint64(n)) } //nolint:gosec // a count

func (w *pieceWriter) text(s string) {
	w.number(len(s))
	w.b = append(w.b, s...)
}

func (w *pieceWriter) strength(s float64) {
	if math.IsNaN(s) {
		s = 0
	}
	w.b = binary.BigEndian.AppendUint16(w.b, uint16(math.Round(strongest*min(max(s, 0), 1))))
}

// idOf returns a fact's ID: the name of its message, or else its UUID.
func idOf(f *graphiti.Fact) (kind byte, text string, raw [16]byte) {
	if f.Episode != "" {
		turn, _ := graphiti.TurnOf(f.Episode)
		if ok := readHex(raw[:], turn); ok {
			switch graphiti.RoleType(f.Episode[strings.LastIndexByte(f.Episode, '.')+1:]) {
			case graphiti.RoleUser:
				return idUser, "", raw
			case graphiti.RoleAssistant:
				return idAssistant, "", raw
			case graphiti.RoleSystem:
				return idSystem, "", raw
			}
		}
		if len(f.Episode) <= maxID {
			return idName, f.Episode, raw
		}
		return idNone, "", raw
	}
	if readUUID(&raw, f.UUID) {
		return idUUID, "", raw
	}
	if f.UUID != "" && len(f.UUID) <= maxID {
		return idText, f.UUID, raw
	}
	return idNone, "", raw
}

// readHex decodes exactly len(to) bytes of lower-case hex digits.
func readHex(to []byte, digits string) bool {
	if len(digits) != 2*len(to) {
		return false
	}
	for i := range len(digits) {
		c := digits[i]
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		default:
			return false
		}
		to[i/2] = to[i/2]<<4 | c
	}
	return true
}

// uuidParts holds the offsets of a UUID's digit groups, in its text and in its bytes.
var uuidParts = [5][2]int{{0, 0}, {9, 4}, {14, 6}, {19, 8}, {24, 10}}

// readUUID parses a UUID in the format of uuidOf.
func readUUID(to *[16]byte, s string) bool {
	if len(s) != 36 || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
		return false
	}
	for i, p := range uuidParts {
		end := len(to)
		if i+1 < len(uuidParts) {
			end = uuidParts[i+1][1]
		}
		if !readHex(to[p[1]:end], s[p[0]:p[0]+2*(end-p[1])]) {
			return false
		}
	}
	return true
}

func uuidOf(raw []byte) string {
	h := hex.EncodeToString(raw)
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}
