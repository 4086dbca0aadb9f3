package card

import (
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/words"
)

// Lists stores lists of short texts, bounded in number and in time. An entry is deleted
// when one of its scopes is forgotten, and is not added when one of them has a newer
// generation.
type Lists interface {
	Add(ctx context.Context, list string, entry []byte, generation int64, scopes ...string) error

	// Entries calls f for the entries of lists, the newest of each first.
	Entries(ctx context.Context, f func(list string, entry []byte), lists ...string) error

	// Remove deletes the entries of lists for which meant returns true.
	Remove(ctx context.Context, meant func(entry []byte) bool, lists ...string) error
}

// Cards stores the lines of cards. It is safe for concurrent use.
type Cards struct{ Lists Lists }

// maxChars is the most characters of a line: a card has room for a few.
const maxChars = 200

// laid are the kinds of promoted texts that a card shows. Others, such as the state of a
// task, were true only for a time.
var laid = []string{"decision", "preference", "procedure", "terminology"}

// LineState determines whether and for which readers a line applies.
type LineState string

// The states.
const (
	Pending    LineState = "pending"    // awaits confirmation; applies in its place at most
	Local      LineState = "local"      // applies in its place, and nowhere else
	Confirmed  LineState = "confirmed"  // applies for all readers of its group
	Rejected   LineState = "rejected"   // does not apply
	Ended      LineState = "ended"      // taken off the card
	Superseded LineState = "superseded" // a newer line about its subject applies
)

// Line is one promoted text or one statement. It is stored as JSON; the newest entry with
// an ID counts.
type Line struct {
	ID    string    `json:"id,omitempty"` // derived from its group, place and text
	Kind  string    `json:"kind"`         // one of laid, rule, or fact
	Text  string    `json:"text"`
	State LineState `json:"state"`
	At    int64     `json:"at"` // Unix seconds

	// Applies is set if the message consisted of the statement: the line then applies in
	// its place even while pending.
	Applies bool `json:"applies,omitempty"`

	Personal  bool   `json:"personal,omitempty"`  // confirmed, it belongs to the person, else to the project
	Place     string `json:"place,omitempty"`     // hash of the place of the statement
	Where     string `json:"where,omitempty"`     // name of the place for people
	Workspace string `json:"workspace,omitempty"` // key of the project; "" outside of any

	Turn    string `json:"turn,omitempty"`    // turn of the statement
	Program string `json:"program,omitempty"` // program that sent the message
	Session string `json:"session,omitempty"` // hash of the conversation
	Owner   string `json:"owner,omitempty"`   // owner of the conversation

	// Promoted is the name of the message that confirming the line stored, if any. Edited is
	// its text if the person changed it.
	Promoted string `json:"promoted,omitempty"`
	Edited   string `json:"edited,omitempty"`

	Was LineState `json:"was,omitempty"` // state before the person's last decision

	Changed int64 `json:"changed,omitempty"` // time of storage, in Unix nanoseconds

	Group string         `json:"-"`
	Scope graphiti.Scope `json:"-"`
}

// The kinds of lines that are not promoted.
const (
	KindRule = "rule" // a sentence with the marks of a rule, or an instruction to remember
	KindFact = "fact" // a text to remember; found by a match, and on no card

	// KindForget is a text to forget. It has ended the matching statements of its place if it
	// applies there, and ends those of its group once the person confirms it.
	KindForget = "forget"
)

// lists returns the names of a group's lists of lines: confirmed, applied in their place, pending,
// and past. Each list has a bound of its own, so a line never evicts another one that applies.
func lists(group string) []string {
	return []string{"card:" + group, "said:" + group, "waits:" + group, "past:" + group}
}

func (l *Line) list() string {
	switch {
	case l.State == Local, l.State == Pending && l.Applies:
		return "said:" + l.Group
	case l.State == Pending:
		return "waits:" + l.Group
	case l.State == Confirmed:
		return "card:" + l.Group
	}
	return "past:" + l.Group
}

// MaxLines is the most lines of a list that applies, and MaxWaiting of the pending one. A list has
// room for more entries, so a full list evicts none.
const MaxLines, MaxWaiting = 128, 48

// IsFull reports whether the list of a line has no room for it.
func IsFull(lines []Line, l *Line) bool {
	n := 0
	for i := range lines {
		if lines[i].list() == l.list() && (lines[i].ID != l.ID || l.ID == "") {
			n++
		}
	}
	return n >= MaxLines && !strings.HasPrefix(l.list(), "past:") || n >= MaxWaiting && strings.HasPrefix(l.list(), "waits:")
}

// keepFor bounds how long a turn waits for the lists.
const keepFor = 5 * time.Second

// Keep stores the line of a promoted text for the targets of a turn that are among groups.
func (c Cards) Keep(t *ledger.Turn, groups []string) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), keepFor)
	defer cancel()
	for _, to := range t.Targets {
		switch {
		case !slices.Contains(groups, to.Group):
		case slices.Contains(laid, t.Kind):
			text := t.User
			if curated, ok := graphiti.ParseCurated(text); ok { // from an export
				text = curated.Text
			}
			l := Line{Kind: t.Kind, Text: text, State: Confirmed, At: t.Said.Unix(), Personal: to.Scope == graphiti.ScopeUser, Turn: t.ID, Session: t.OfSession(), Owner: t.Owner, Group: to.Group}
			if t.Foreign {
				l.State = Pending
			}
			if len(t.Restored) > 0 { // the export may have the state of the line
				_, _, failed := c.Offer(ctx, l, t.Generation, t.ImportScopes()...)
				err = errors.Join(err, failed)
				continue
			}
			err = errors.Join(err, c.addOnce(ctx, l, t.Generation))
		}
	}
	return err
}

// addOnce stores a line unless the group already contains it in the same state.
func (c Cards) addOnce(ctx context.Context, l Line, generation int64) error {
	all, err := c.Lines(ctx, []graphiti.Target{{Group: l.Group}})
	if err != nil {
		return err
	}
	l.SetID()
	if slices.ContainsFunc(all, func(o Line) bool { return o.ID == l.ID && o.State == l.State || o.isStoredAs(&l) }) {
		return nil
	}
	return c.Put(ctx, l, generation)
}

// isStoredAs reports whether a promoted text is the message of a confirmed line.
func (l *Line) isStoredAs(promoted *Line) bool {
	turn, ok := graphiti.TurnOf(l.Promoted)
	return ok && turn == promoted.Turn
}

// SetID shortens the text to one line, and derives the ID.
func (l *Line) SetID() {
	l.Text = shorten(l.Text)
	of := "line"
	if l.Kind == KindForget {
		of = "forget"
	}
	sum := graphiti.Digest(of, l.Group, l.Place, strings.ToLower(l.Text))
	l.ID = hex.EncodeToString(sum[:6])
}

// Put stores a line in the list of its group. Forgetting its group, its conversation, or
// one of groups deletes it.
func (c Cards) Put(ctx context.Context, l Line, generation int64, groups ...string) error {
	l.Changed = time.Now().UnixNano()
	return c.put(ctx, l, generation, groups...)
}

func (c Cards) put(ctx context.Context, l Line, generation int64, groups ...string) error {
	if l.SetID(); l.Text == "" {
		return nil
	}
	body, _ := json.Marshal(l) // strings, numbers and booleans only
	scopes := []string{l.Group}
	for _, g := range groups {
		if g != l.Group {
			scopes = append(scopes, g)
		}
	}
	if l.Session != "" {
		scopes = append(scopes, graphiti.SessionScopeOf(l.Session, ""), graphiti.SessionScopeOf(l.Session, l.Owner))
	}
	if err := c.Lists.Add(ctx, l.list(), body, generation, scopes...); err != nil {
		return err
	}
	return c.Lists.Remove(ctx, func(body []byte) bool { // its earlier states
		var o Line
		return json.Unmarshal(body, &o) == nil && o.ID == l.ID && o.Changed < l.Changed
	}, lists(l.Group)...)
}

// ErrFull is the error of a list without room for another line.
var ErrFull = errors.New("too many rules and preferences; decide on some first: graphiti-proxy memory pending")

// Offer stores a line unless its group contains it in any state, and returns the stored line and
// whether it is new. Forgetting one of scopes deletes it, too.
func (c Cards) Offer(ctx context.Context, l Line, generation int64, scopes ...string) (kept Line, isNew bool, err error) {
	all, err := c.Lines(ctx, []graphiti.Target{{Group: l.Group}})
	if err != nil {
		return l, false, err
	}
	l.SetID()
	if i := slices.IndexFunc(all, func(o Line) bool { return o.ID == l.ID || o.isStoredAs(&l) }); i >= 0 {
		return all[i], false, nil
	}
	if IsFull(all, &l) {
		return l, false, ErrFull
	}
	if now := time.Now(); l.Changed == 0 || l.Changed > now.UnixNano() || l.At > now.Unix() { // a line from the future would win forever
		l.Changed, l.At = now.UnixNano(), min(l.At, now.Unix())
	}
	return l, true, c.put(ctx, l, generation, scopes...)
}

// Remove deletes the lines for which meant returns true from the lists of groups.
func (c Cards) Remove(ctx context.Context, groups []string, meant func(l *Line) bool) error {
	var of []string
	for _, g := range groups {
		of = append(of, lists(g)...)
	}
	return c.Lists.Remove(ctx, func(body []byte) bool {
		var l Line
		return json.Unmarshal(body, &l) == nil && meant(&l)
	}, of...)
}

// shorten returns a text in one line, cut if it is long.
func shorten(text string) string {
	return graphiti.Shorten(strings.Join(strings.Fields(text), " "), "…", maxChars)
}

// Lines returns the lines of groups, the newest first, each in its newest state. A line is
// superseded if a newer line about its subject applies everywhere it does.
func (c Cards) Lines(ctx context.Context, reads []graphiti.Target) (all []Line, err error) {
	all, err = c.Stored(ctx, reads)
	of := make([]compared, len(all))
	for i := range all {
		if of[i] = comparedOf(all[i].Shown()); replaced(all, of, i) {
			all[i].State = Superseded
		}
	}
	return all, err
}

// Stored returns the lines of groups as Lines does, without comparing them.
func (c Cards) Stored(ctx context.Context, reads []graphiti.Target) (all []Line, err error) {
	of := make(map[string]graphiti.Target) // by list
	var names []string
	for _, r := range reads {
		if r.Scope == "" {
			r.Scope, _ = graphiti.ScopeOf(r.Group)
		}
		for _, l := range lists(r.Group) {
			of[l] = r
			names = append(names, l)
		}
	}
	newest := make(map[string]int) // index of a line in all, by group and ID
	err = c.Lists.Entries(ctx, func(list string, body []byte) {
		var l Line
		if json.Unmarshal(body, &l) != nil {
			return
		}
		l.Group, l.Scope = of[list].Group, of[list].Scope
		at, known := newest[l.Group+l.ID]
		switch {
		case !known:
			newest[l.Group+l.ID] = len(all)
			all = append(all, l)
		case all[at].Changed < l.Changed:
			all[at] = l
		}
	}, names...)
	slices.SortStableFunc(all, func(a, b Line) int { return cmp.Or(cmp.Compare(b.At, a.At), cmp.Compare(b.Changed, a.Changed)) })
	return all, err
}

// replaced reports whether one of the newer lines replaces the line with index i; of has their texts.
func replaced(all []Line, of []compared, i int) bool {
	l := &all[i]
	if !l.Applied(l.Place) {
		return false
	}
	for k := range i {
		n := &all[k]
		if n.Applied(l.Place) && (l.State != Confirmed || n.State == Confirmed) && !strings.EqualFold(n.Shown(), l.Shown()) && of[k].same(of[i]) {
			return true
		}
	}
	return false
}

// AnyPlace matches all places outside of projects.
const AnyPlace = ""

// Applied reports whether the card shows a line in a place.
func (l *Line) Applied(place string) bool {
	here := l.Place == place || place == AnyPlace && l.Workspace == ""
	return l.ForCard() && (l.State == Confirmed || here && (l.State == Local || l.State == Pending && l.Applies))
}

// ForCard reports whether a card can show the line.
func (l *Line) ForCard() bool { return l.Kind != KindFact && l.Kind != KindForget }

// Facts returns the card for a caller in a place with these groups: confirmed lines first,
// then by scope (see order), then the newest first.
func (c Cards) Facts(ctx context.Context, reads []graphiti.Target, place string) ([]graphiti.Fact, error) {
	if len(reads) == 0 {
		return nil, nil
	}
	all, err := c.Lines(ctx, reads)
	if err != nil {
		return nil, err
	}
	var shown []Line
	var of []compared
	for _, l := range all {
		if !l.Applied(place) {
			continue
		}
		if s := comparedOf(l.Shown()); !slices.ContainsFunc(of, s.same) {
			shown, of = append(shown, l), append(of, s)
		}
	}
	slices.SortStableFunc(shown, func(a, b Line) int {
		return cmp.Or(cmp.Compare(rank(&a), rank(&b)), cmp.Compare(scopeRank(a.Scope), scopeRank(b.Scope)))
	})
	facts := make([]graphiti.Fact, len(shown))
	for i := range shown {
		facts[i] = shown[i].fact()
	}
	return facts, nil
}

// order lists the scopes that come first; the others come last.
var order = []graphiti.Scope{graphiti.ScopeWorkspace, graphiti.ScopeSession, graphiti.ScopeSystem, graphiti.ScopeUser}

// rank puts confirmed lines first: a card has room for a few, and any document may add
// unconfirmed lines.
func rank(l *Line) int {
	if l.State == Confirmed {
		return 0
	}
	return 1
}

func scopeRank(s graphiti.Scope) int {
	if i := slices.Index(order, s); i >= 0 {
		return i
	}
	return len(order)
}

// Shown returns the text of the line, as its person has edited it.
func (l *Line) Shown() string { return cmp.Or(l.Edited, l.Text) }

// PromotedKind returns the kind of the text that confirming the line stores.
func (l *Line) PromotedKind() string {
	switch {
	case l.Kind == KindFact:
		return "lesson_learned"
	case l.Kind == KindRule && l.Personal:
		return "preference"
	case l.Kind == KindRule:
		return "decision"
	}
	return l.Kind
}

// Says returns the line as a card shows it.
func (l *Line) Says() string { return l.fact().Text }

// fact returns the line in the form of a promoted text in a memory, to avoid showing it
// twice if a search finds it too.
func (l *Line) fact() graphiti.Fact {
	at, kind := time.Unix(l.At, 0), l.Kind
	if l.Promoted != "" {
		kind = l.PromotedKind()
	}
	return graphiti.Fact{
		Text: strings.ReplaceAll(kind, "_", " ") + ", " + at.Format(time.DateOnly) + ": " + l.Shown(), Group: l.Group,
		CreatedAt: at, ValidAt: at, Dated: true,
	}
}

// Stands reports whether the line applies or is pending.
func (l *Line) Stands() bool {
	return l.State == Confirmed || l.State == Local || l.State == Pending
}

// Says reports whether one sentence of text contains all content words of said, and both or
// neither of them forbid.
func Says(text, said string) bool { return Sayer(said)(text) }

// Sayer returns Says for a fixed second argument.
func Sayer(said string) func(text string) bool {
	terms, forbids := slices.Collect(maps.Keys(termsOf(said))), marksOf(said).forbids
	return func(text string) bool {
		lower := strings.ToLower(text)
		if len(terms) == 0 || slices.ContainsFunc(terms, func(t string) bool {
			return !strings.Contains(lower, t[:min(len(t), sameStart)]) && isASCII(t) && isASCII(lower)
		}) {
			return false // the usual case
		}
		for s := range words.Sentences(text) {
			has := stemsOf(s)
			if !slices.ContainsFunc(terms, func(t string) bool { return !has[t] }) && marksOf(s).forbids == forbids {
				return true
			}
		}
		return false
	}
}

// sameStart is the number of letters that the stem of an English word shares with the word.
const sameStart = 2

func isASCII(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r >= utf8.RuneSelf })
}
