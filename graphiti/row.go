package graphiti

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"iter"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tidwall/gjson"
)

// Row is a message in a memory, or on its way there. It may also be a stored entry with both sides
// of a turn, before Sides.
type Row struct {
	ID      ID     // equal in every group with a copy
	Group   string // its group
	Turn    TurnID // zero if it belongs to no turn
	Session string // hash of its session, or ""
	Role    RoleType
	Said    time.Time

	// The fields below may be empty unless Filter.Text is set.
	Key     string // backend's ID of the stored entry. An entry with both sides of a turn has two rows
	Name    string // stable name, see EpisodeName
	Speaker string
	Text    string
	Source  string // source description, a small JSON object

	Facts []string // UUIDs of its facts in Graphiti, if known

	// Rest is the number of selected entries after this one, regardless of Filter.Last, if
	// Filter.Newest or Filter.Words is set.
	Rest int
}

// ID identifies a message by its name. People use it in commands, because names may be long
// and untrusted. The zero ID belongs to messages without a name.
type ID [hashBytes]byte

// String returns the ID in hex, or "" for the zero ID.
func (id ID) String() string {
	if id == (ID{}) {
		return ""
	}
	return hex.EncodeToString(id[:])
}

// IDOf returns the ID of a message name.
func IDOf(name string) (id ID) {
	if name == "" {
		return id
	}
	return ID(shortSum("message", name))
}

// ParseID returns the ID that String returned. ok is false for other texts.
func ParseID(s string) (id ID, ok bool) {
	b, err := hex.DecodeString(s)
	if err != nil || len(b) != len(id) || strings.ToLower(s) != s {
		return id, false
	}
	return ID(b), true
}

// MessageID returns the ID of a message name in hex.
func MessageID(name string) string { return IDOf(name).String() }

// TurnID identifies a turn: its ID in a message name if that has 32 hex digits, and a hash of
// it otherwise.
type TurnID [16]byte

func turnIDOf(name string) (id TurnID) {
	turn, ok := TurnOf(name)
	if !ok {
		return id
	}
	if len(turn) == 2*len(id) {
		if _, err := hex.Decode(id[:], []byte(turn)); err == nil {
			return id
		}
	}
	sum := sha256.Sum256([]byte(turn))
	return TurnID(sum[:len(id)])
}

// Identify sets the fields that follow from the name and the source.
func (r *Row) Identify() {
	r.ID, r.Turn, r.Session = IDOf(r.Name), turnIDOf(r.Name), gjson.Get(r.Source, "session").Str
}

// Plain returns the text without the form of a curated text.
func (r *Row) Plain() string {
	if c, ok := ParseCurated(r.Text); ok && r.Role == RoleSystem {
		return c.Text
	}
	return r.Text
}

// Filter selects rows of a group. Its conditions apply together.
type Filter struct {
	// A row has one of the IDs, Names or Keys. No value selects all rows.
	IDs         []ID
	Names, Keys []string

	Session string     // hash of a session
	Roles   []RoleType // any of these
	Since   time.Time  // not said earlier
	Before  time.Time  // said earlier
	Client  string     // a part of its client's name, in lower case

	// Statements leaves out the questions and requests of an embedded memory.
	Statements bool

	// Words have the form of words.Of. Of a memory with an index of words, a row has one of
	// them; those with the most of them come first, then the latest. With Newest, a row has all.
	Words []string

	// Last limits the entries to the latest ones, together with all entries of the earliest
	// moment. It needs Newest.
	Last int

	// Newest orders rows by time, the latest first, and those of one moment in reverse order
	// of storage. The default is the order of storage. It excludes Names and Keys.
	Newest bool

	// Text requests all fields. An embedded memory reads the others from RAM.
	Text bool
}

// Named reports whether the filter names single messages.
func (f *Filter) Named() bool { return len(f.IDs)+len(f.Names)+len(f.Keys) > 0 }

// IsClient reports whether the filter selects a client by its name.
func (f *Filter) IsClient(name string) bool {
	return f.Client == "" || strings.Contains(strings.ToLower(name), f.Client)
}

// Has reports whether the filter selects a row with all fields, regardless of Last.
func (f *Filter) Has(r *Row) bool {
	switch {
	case f.Named() && !slices.Contains(f.IDs, r.ID) && !slices.Contains(f.Names, r.Name) && !slices.Contains(f.Keys, r.Key),
		f.Session != "" && r.Session != f.Session,
		len(f.Roles) > 0 && !slices.Contains(f.Roles, r.Role),
		!f.Since.IsZero() && r.Said.Before(f.Since),
		!f.Before.IsZero() && !r.Said.Before(f.Before),
		!f.IsClient(gjson.Get(r.Source, "client").Str):
		return false
	}
	return true
}

// maxMoment bounds the entries of one listing that exceeds Filter.Last.
const maxMoment = 10_000

// Rows returns rows as Lister does, also with Last and Newest together.
func (m *Memory) Rows(ctx context.Context, group string, f Filter) iter.Seq2[Row, error] {
	last := f.Last
	if last == 0 || !f.Newest {
		return m.Lister.Rows(ctx, group, f)
	}
	f.Last = 0
	return func(yield func(Row, error) bool) {
		n, before := 0, Row{}
		for r, err := range m.Lister.Rows(ctx, group, f) {
			if err == nil && (n == 0 || r.Key != before.Key) {
				if n >= last && (n >= maxMoment || !r.Said.Equal(before.Said)) {
					return
				}
				n, before = n+1, r
			}
			if !yield(r, err) {
				return
			}
		}
	}
}

// Lister lists messages.
type Lister interface {
	// Rows returns rows of a group. Rows stored or deleted meanwhile may be missing, and no row
	// repeats. An error ends the sequence. Only Memory.Rows supports Last and Newest together.
	Rows(ctx context.Context, group string, f Filter) iter.Seq2[Row, error]
}

// SideMark returns the text before a further message of an entry, in Graphiti's format.
func SideMark(speaker string, role RoleType) string {
	return "\n" + speaker + "(" + string(role) + "): "
}

// Join returns an entry with all messages of turns of one speaker, in order. Its source has the place of
// each further message, because texts may contain false marks, and the ID and the time of each further turn.
// ok is false if the source of the first message has no room.
func Join(messages []Row) (r Row, ok bool) {
	r = messages[0]
	source, ok := strings.CutSuffix(r.Source, "}")
	last, _ := TurnOf(r.Name)
	var parts [][]any
	for _, m := range messages[1:] {
		part := []any{len(r.Text)}
		if turn, _ := TurnOf(m.Name); turn != last {
			part, last = append(part, turn, m.Said.UnixMilli()), turn
		}
		parts = append(parts, part)
		r.Text += SideMark(r.Speaker, m.Role) + m.Text
	}
	b, err := json.Marshal(parts)
	r.Source = source + `,"parts":` + string(b) + "}"
	return r, ok && source != "{" && err == nil
}

// Sides returns the identified row of each message in an entry.
func (r Row) Sides() []Row {
	r.Identify()
	sides, from, said := []Row{r}, 0, r.Said
	turn, ours := TurnOf(r.Name)
	for _, p := range gjson.Get(r.Source, "parts").Array() {
		side, at, role := r, int(p.Get("0").Int()), RoleAssistant
		if next := p.Get("1"); next.Exists() {
			turn, role, said = next.Str, RoleUser, time.UnixMilli(p.Get("2").Int())
		}
		if !ours || r.Role != RoleUser || turn == "" || at <= from || at >= len(r.Text) || !utf8.RuneStart(r.Text[at]) {
			return []Row{r}
		}
		text, marked := strings.CutPrefix(r.Text[at:], SideMark(r.Speaker, role))
		if !marked {
			return []Row{r}
		}
		sides[len(sides)-1].Text = r.Text[from:at]
		from = len(r.Text) - len(text)
		side.Name, side.Role, side.Said, side.Text = EpisodeName(turn, role), role, said, text
		side.Identify()
		sides = append(sides, side)
	}
	return sides
}
