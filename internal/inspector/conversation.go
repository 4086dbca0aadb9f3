package inspector

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
)

// conversation is the page of a conversation, with the reasons for its answers.
type conversation struct {
	whose
	service.Conversation
	Turns   []turn
	All     int
	Older   string // page of the turns before these
	Newer   string
	Note    string
	In      []memoryRow
	Forget  string
	Message string // id of the message on its own page
	Whole   string // page of the whole conversation, on the page of a message
}

// turn is one turn of a conversation.
type turn struct {
	ID, Time string
	Asked    []spoken // messages of the person, after the block
	Answered []spoken
	Decision *decision
}

// spoken is a message.
type spoken struct {
	ID, Role, Time string
	Text           said
	Href           string
	Talk           string // page of its conversation, outside of that page
	Here           bool   // the page is about this message
	Waits          bool   // not yet in the memory
	Ended          string // time at which its person ended it
}

// Class returns the CSS class of the message.
func (s *spoken) Class() string {
	if _, known := roles[s.Role]; known {
		return s.Role
	}
	return "user"
}

// decision is the result of memory for a turn.
type decision struct {
	Shown, Gone bool
	Lines       int
	Chars       int
	Why         explained
	Says        string
	Pieces      []piece // pieces in the block
	Others      []piece // best pieces outside of the block
	Raw         string
}

// piece is one result of a search in memory.
type piece struct {
	Label, Says string
	Text        said
	Now         said // text of the message, if the line has another
	Kind, Scope string
	Role, Time  string
	Strength    string
	Percent     int
	Source      string // page of its conversation
	Href        string // page of the message
	Gone        bool
	Card        *onCard
}

// onCard is a line of the card, with the fields of the form that takes it off.
type onCard struct {
	whose
	CSRF, Group, Line, Back string
}

const (
	// turnsAtOnce and roomForTurns bound a page: it has only the newest of its turns if
	// they need more room.
	turnsAtOnce  = 30
	roomForTurns = 80 << 10 // bytes

	around = 1200 // bytes of HTML around a text, about
)

func (v *visit) conversation() error {
	if known, err := v.somebody("Choose a person"); !known {
		return err
	}
	hash := v.r.PathValue("hash")
	skip, err := strconv.Atoi(v.r.FormValue("skip"))
	if err != nil || skip < 0 {
		skip = 0
	}
	got, err := look(v, service.TurnsOf, func(in *service.ConversationRequest) {
		in.Selector, in.Hash, in.Skip, in.Limit = v.ofWhom(v.r.FormValue("group")), hash, skip, turnsAtOnce
	})
	if err != nil {
		return err
	}
	return v.shownTurns(&got, hash, skip)
}

// shownTurns shows a conversation without its skip newest turns.
func (v *visit) shownTurns(got *service.Explained, hash string, skip int) error {
	path := "/conversation/" + url.PathEscape(hash)
	c := v.shownConversation(got, path, "")
	if n := skip + len(c.Turns); n < got.AllTurns {
		c.Older = v.whose().at(path, "skip", strconv.Itoa(n))
	}
	if skip > 0 {
		c.Newer = v.whose().at(path)
	}
	return v.show("conversation", "Conversation", c)
}

// conversationAt returns the address of a conversation, at a turn unless turn is empty.
func (v *visit) conversationAt(hash, turn string) string {
	return conversationAt(v.whose(), hash, turn)
}

func conversationAt(w whose, hash, turn string) string {
	at := w.at("/conversation/" + url.PathEscape(hash))
	if turn != "" {
		at += "#t-" + url.PathEscape(turn)
	}
	return at
}

// shownConversation returns the conversation for a page at path. message is the id of the
// page's message, or empty.
func (v *visit) shownConversation(got *service.Explained, path, message string) *conversation {
	w := v.whose()
	c := &conversation{whose: w, Conversation: got.Conversation, All: got.AllTurns, Note: got.Note, Message: message}
	for i := range got.Memories {
		c.In = append(c.In, v.memoryRow(&got.Memories[i]))
	}
	if got.Hash != "" && len(got.Memories) > 0 {
		c.Forget = w.at("/memory/forget", "session", got.Hash)
	}
	for i := len(got.Turns) - 1; i >= 0 && (len(c.Turns) == 0 || v.used < roomForTurns); i-- {
		c.Turns = append(c.Turns, v.turn(&got.Turns[i], path, message))
	}
	slices.Reverse(c.Turns)
	return c
}

func (v *visit) turn(t *service.Turn, path, message string) turn {
	out := turn{ID: t.ID, Time: t.Time}
	back := v.whose().at(path) + "#t-" + url.PathEscape(t.ID)
	for i := range t.Messages {
		s := v.spoken(&t.Messages[i], back)
		s.Here = message != "" && s.ID == message
		if s.Role == "assistant" {
			out.Answered = append(out.Answered, s)
		} else {
			out.Asked = append(out.Asked, s)
		}
	}
	if t.Decision != nil {
		out.Decision = v.decision(t.Decision, back)
	}
	return out
}

// spoken converts a message. back is the page to return to after a change of it.
func (v *visit) spoken(r *service.Record, back string) spoken {
	href := v.messageAt(r.ID, r.Group, back)
	v.used += around / 2
	return spoken{ID: r.ID, Role: r.Role, Time: r.Time, Text: v.said(r.Text, href), Href: href, Waits: r.Where == "queue", Ended: r.Ended}
}

// messageAt returns the address of a message in a group, or "" without an id.
func (v *visit) messageAt(id, group, back string) string {
	if id == "" {
		return ""
	}
	return v.whose().at("/message/"+url.PathEscape(id), "group", group, "back", back)
}

func (v *visit) decision(d *service.Decision, back string) *decision {
	out := &decision{Shown: d.Block != "", Gone: d.Gone, Lines: d.Facts, Chars: utf8.RuneCountInString(d.Block), Raw: d.Block}
	v.used += weightOf(d.Block)
	if !out.Shown && !out.Gone {
		out.Why = reasonOf(cmp.Or(d.Reason, "timeout or error"))
		out.Says = sentence(d.Why)
	}
	for i := range d.Pieces {
		p := v.piece(&d.Pieces[i], back)
		if d.Pieces[i].Verdict == "shown" {
			out.Pieces = append(out.Pieces, p)
		} else {
			out.Others = append(out.Others, p)
		}
	}
	return out
}

func (v *visit) piece(p *service.Piece, back string) piece {
	out := piece{Kind: pieceKind(p.Kind), Role: p.Role, Time: p.Time, Gone: p.Text == "" && p.Line == "", Href: v.messageAt(p.ID, p.Group, back)}
	v.used += around
	out.Label, out.Says = verdictOf(p.Verdict)
	if p.Scope != "" {
		out.Scope = scopeOf(p.Scope)
	}
	out.Text = v.cut(cmp.Or(p.Line, p.Text), lineBeginning, out.Href)
	if p.Line != "" && p.Text != "" && p.Text != p.Line && !strings.HasSuffix(p.Line, ": "+p.Text) { // the line adds the author and the time
		out.Now = v.cut(p.Text, lineBeginning, out.Href)
	}
	if p.Strength != nil {
		out.Strength, out.Percent = strconv.FormatFloat(*p.Strength, 'f', 2, 64), int(100*min(max(*p.Strength, 0), 1))
	}
	if p.Conversation != "" {
		out.Source = v.conversationAt(p.Conversation, p.Turn)
	}
	if p.Kind == "card" {
		out.Says = "A line of the card."
		if p.Group != "" && p.Text != "" {
			out.Card = &onCard{v.whose(), v.CSRF, p.Group, cardField(p.Text), back}
		}
	}
	return out
}
